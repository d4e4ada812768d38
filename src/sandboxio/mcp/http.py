"""The streamable-http transport: one sandbox per session, for clients that may ask.

Host and Origin headers are checked on every bind, against names of this machine and those that were allowed,
so that no web page can reach the server through a name of its own. Beyond this machine a bearer token is
required as well.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from sandboxio import ConfigurationError
from sandboxio.mcp.connections import BACKLOG, connections_for
from sandboxio.mcp.gates import BearerGate, NameGate
from sandboxio.mcp.interruption import Interruptible
from sandboxio.mcp.options import TOKEN_VARIABLE, Options
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.mcp.signals import EndingSignals

__all__ = ["application", "check_exposure", "serve_http"]

SHORTEST_TOKEN: Final = 16
TOKEN_FIX: Final = f"set {TOKEN_VARIABLE} to a long random text, such as `openssl rand -hex 32` gives"
SESSION_IDLE_SECONDS: Final = 900.0
"""After this time without a request or an open stream a session ends, and its sandbox with it."""
GRACE_SECONDS: Final = 3
"""How long connections may stay after a signal, for clients that do not read the end of their answer."""


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
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_sessions=options.max_sessions,
        session_idle_timeout=SESSION_IDLE_SECONDS,
    )
    gated = NameGate(app, _names(options), options.allowed_origins)
    return gated if options.token is None else BearerGate(gated, options.token)


async def serve_http(server: MCPServer[Sandboxes], options: Options, signals: EndingSignals) -> None:
    """Serve until a signal comes; every sandbox has ended when this returns.

    Raises:
        ConfigurationError: It would be exposed, or the address cannot be listened on.

    Example: `await serve_http(server, options, signals)`
    """
    app = Interruptible(application(server, options))
    with _listening(options) as listener:
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"sandboxio.mcp listens on http://{shown}:{port}/mcp", file=sys.stderr, flush=True)  # noqa: T201
        config = uvicorn.Config(
            app,
            http=connections_for(options.max_sessions),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        listening = _Listening(config)
        async with anyio.create_task_group() as group:
            async with server.session_manager.run():
                group.start_soon(listening.serve, [listener])
                await signals.wait()
                app.refuse()
                # The SDK would warn of each call in progress that nobody takes its answer any more.
                logging.getLogger("mcp.shared.jsonrpc_dispatcher").setLevel(logging.ERROR)
            app.interrupt()
            listening.stop()


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
    except (OSError, UnicodeError) as exc:  # the latter from a name that no name server could know
        why = exc.strerror if isinstance(exc, OSError) else None
        raise ConfigurationError(
            f"{options.host}:{options.port} cannot be listened on: {why or exc}",
            hint="choose another --port or --host; --port 0 takes any free port",
        ) from exc


def _names(options: Options) -> list[str]:
    if _is_wildcard(options.host):
        return [*options.allowed_hosts]
    return [f"[{options.host}]" if ":" in options.host else options.host, *options.allowed_hosts]


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
