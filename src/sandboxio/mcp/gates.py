"""What a request over HTTP passes before anything looks at it: its names, and its token."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BearerGate", "NameGate"]

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_LOCAL_ORIGINS: Final = frozenset(f"http://{name}" for name in LOCAL_NAMES)
_PORT: Final = re.compile(r":[0-9]{1,5}\Z")


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
        if scope["type"] != "lifespan" and not self._admits(Headers(scope=scope)):
            refusal = PlainTextResponse("a bearer token is needed", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admits(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)


class NameGate:
    """Lets a request through if its `Host`, and its `Origin` if it has one, were allowed.

    A page of a stranger reaches a server of this machine through a browser, also below a name of its own
    that resolves to this machine. Both headers give it away.

    Args:
        app: What is behind the gate.
        hosts: Names of the server, beside those of this machine. One without a port stands for every port.
        origins: Where pages may come from, beside every port of this machine.

    Example: `NameGate(app, ["mcp.example.org"], ["https://app.example.org"])`
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset([*LOCAL_NAMES, *map(str.lower, hosts)])
        self._origins = frozenset(map(str.lower, origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 421 for a host and 403 for an origin."""
        refusal = None if scope["type"] == "lifespan" else self._refusal(Headers(scope=scope))
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if not hosts or not all(map(self._is_ours, hosts)):
            return PlainTextResponse("the Host header names another server; see --allowed-host", 421)
        if not all(map(self._is_welcome, headers.getlist("origin"))):
            return PlainTextResponse("the Origin header names a stranger; see --allowed-origin", 403)
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        return name in self._hosts or _PORT.sub("", name) in self._hosts

    def _is_welcome(self, origin: str) -> bool:
        page = origin.lower()
        return page in self._origins or _PORT.sub("", page) in _LOCAL_ORIGINS
