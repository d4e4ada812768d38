"""The streamable-http transport: one sandbox per session, for clients that may ask.

Host and Origin headers are checked by the SDK on every bind, against names of this machine and those that
were allowed, so that no web page can reach the server through a name of its own. Beyond this machine a
bearer token is required as well.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sandboxio import ConfigurationError
from sandboxio.mcp.options import TOKEN_VARIABLE, Options
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.mcp.signals import stop_on_signal

__all__ = ["BearerGate", "application", "check_exposure", "serve_http"]

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
SHORTEST_TOKEN: Final = 16
TOKEN_FIX: Final = f"set {TOKEN_VARIABLE} to a long random text, such as `openssl rand -hex 32` gives"
SESSION_IDLE_SECONDS: Final = 900.0
"""After this time without a request or an open stream a session ends, and its sandbox with it."""
GRACE_SECONDS: Final = 3
"""How long requests may go on after a signal."""


class BearerGate:
    """Lets a request through if it carries the token. It stands before everything else, the body included.

    Args:
        app: What is behind the gate.
        token: What must come as `Authorization: Bearer …`.

    Example: `BearerGate(app, "a token of sixteen characters or more")`
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or answer 401. The comparison takes the same time for every wrong token of one length."""
        if scope["type"] == "http":
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
                refusal = PlainTextResponse("a bearer token is needed", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def check_exposure(options: Options) -> None:
    """Refuse to be reachable by others without a token, and tokens that can be guessed.

    Raises:
        ConfigurationError: A token is missing or too short, or no client could name the server.

    Example: `check_exposure(Options(host="0.0.0.0"))` raises.
    """
    token = options.token
    if token is None and not _is_loopback(options.host):
        raise ConfigurationError(
            f"{options.host!r} is reachable from other machines, and no token is set",
            hint=f"{TOKEN_FIX}, or listen on 127.0.0.1",
        )
    if token is not None and (
        len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise ConfigurationError(
            f"the token in {TOKEN_VARIABLE} is shorter than {SHORTEST_TOKEN} characters or fits no header",
            hint=TOKEN_FIX,
        )
    if _is_wildcard(options.host) and not options.allowed_hosts:
        raise ConfigurationError(
            f"{options.host!r} is every address of this machine, and clients have no name to call it by",
            hint="add --allowed-host NAME for the name in the clients' URL, or listen on one address",
        )


def application(server: MCPServer[Sandboxes], options: Options) -> ASGIApp:
    """The ASGI application, with every check in place.

    Raises:
        ConfigurationError: It would be exposed; see `check_exposure`.

    Example: `application(server, Options(transport="streamable-http"))`
    """
    check_exposure(options)
    app = server.streamable_http_app(
        host=options.host,
        transport_security=_header_rules(options),
        max_sessions=options.max_sessions,
        session_idle_timeout=SESSION_IDLE_SECONDS,
    )
    return app if options.token is None else BearerGate(app, options.token)


async def serve_http(server: MCPServer[Sandboxes], options: Options) -> int:
    """Serve until a signal comes; every sandbox has ended when this returns.

    Returns:
        The number of the signal.

    Raises:
        ConfigurationError: It would be exposed, or the address cannot be listened on.

    Example: `signal_number = await serve_http(server, options)`
    """
    app = application(server, options)
    with _listening(options) as listener:
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"sandboxio.mcp listens on http://{shown}:{port}/mcp", file=sys.stderr, flush=True)  # noqa: T201
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        listening, received = _Listening(config), list[int]()
        async with anyio.create_task_group() as group:
            group.start_soon(stop_on_signal, listening.stop, received)
            await listening.serve(sockets=[listener])
            group.cancel_scope.cancel()
    return received[0] if received else 0


class _Listening(uvicorn.Server):
    """uvicorn without its signals: it raises them again, and SIGTERM would take the exit code."""

    def stop(self) -> None:
        """Take no further requests and come to an end."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


def _listening(options: Options) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family)
    except OSError as exc:
        raise ConfigurationError(
            f"{options.host}:{options.port} cannot be listened on: {exc.strerror or exc}",
            hint="choose another --port or --host; --port 0 takes any free port",
        ) from exc


def _header_rules(options: Options) -> TransportSecuritySettings:
    names: list[str] = [*LOCAL_NAMES]
    if not _is_wildcard(options.host):
        names.append(f"[{options.host}]" if ":" in options.host else options.host)
    names += options.allowed_hosts
    hosts = [form for name in dict.fromkeys(names) for form in (name, f"{name}:*")]
    origins = [form for name in LOCAL_NAMES for form in (f"http://{name}", f"http://{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[*origins, *options.allowed_origins]
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == ""
