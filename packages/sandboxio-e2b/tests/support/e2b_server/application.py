"""Where a request goes: to the control plane, or to a port of a sandbox."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import cast

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import envd_files, envd_process, files_http, interpreter
from .control import ControlPlane, Refused, error_reply
from .exchange import Exchange, exchange_of, sandbox_of
from .faults import GROUPS, Faults
from .schema import Malformed
from .state import Cloud, Sandbox

__all__ = ["Application"]

ENVD_PORT, INTERPRETER_PORT = "49983", "49999"

_PORTS: dict[str, Sequence[Route]] = {
    ENVD_PORT: [*envd_process.ROUTES, *envd_files.ROUTES, *files_http.ROUTES],
    INTERPRETER_PORT: interpreter.ROUTES,
}
# The interpreter's own calls carry the token on this one only.
_TOKEN_OPTIONAL = frozenset(GROUPS["contexts"].split())
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}


class Application:
    """The whole service as one ASGI application."""

    def __init__(self, cloud: Cloud, faults: Faults, api_key: str) -> None:
        self._cloud = cloud
        self._faults = faults
        self._api_key = api_key
        self._control = ControlPlane(cloud)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or break off when its client or its sandbox is gone."""
        headers = Headers(scope=scope)
        if "e2b-sandbox-id" in headers:
            routes: Sequence[Route] = _PORTS.get(headers.get("e2b-sandbox-port", ""), ())
        else:
            routes = self._control.routes
        app, operation = _route(routes, scope)
        exchange = Exchange(
            labels=frozenset({"any", operation, _GROUP_OF.get(operation, operation)}),
            connection=cast(asyncio.Transport, scope["transport"]),
        )
        scope["exchange"] = exchange
        served: ASGIApp = self._controlled(app)
        if "e2b-sandbox-id" in headers:
            served = self._addressed(headers, app, operation)
            self._attach_sandbox(exchange, headers["e2b-sandbox-id"])
        effect = self._faults.meet(exchange.labels)
        try:
            if effect is None:
                await served(scope, receive, send)
            else:
                await effect.play(served, scope, receive, send)
        except ClientDisconnect:
            pass

    def _attach_sandbox(self, exchange: Exchange, sandbox_id: str) -> None:
        sandbox = self._cloud.running(sandbox_id)
        if sandbox is not None:
            exchange.sandbox = sandbox
            exchange.end_sandbox = lambda: _begin_end(self._cloud, sandbox)

    def _controlled(self, app: ASGIApp) -> ASGIApp:
        async def control(scope: Scope, receive: Receive, send: Send) -> None:
            reply: ASGIApp = app
            if not secrets.compare_digest(Headers(scope=scope).get("x-api-key", ""), self._api_key):
                reply = error_reply(401, "Unauthorized, please check your credentials.")
            try:
                await reply(scope, receive, send)
            except Malformed as error:
                await error_reply(400, str(error))(scope, receive, send)
            except Refused as error:
                await error_reply(error.status, error.message, error.error_code)(scope, receive, send)

        return control

    def _addressed(self, headers: Headers, app: ASGIApp, operation: str) -> ASGIApp:
        async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
            sandbox = exchange_of(scope).sandbox
            refusal = _turned_away(headers, sandbox, operation)
            if refusal is not None:
                await refusal(scope, receive, send)
            else:
                await _serve_until_over(app, scope, receive, send)

        return proxy


def _begin_end(cloud: Cloud, sandbox: Sandbox) -> None:
    cloud.begin_end(sandbox)


def _route(routes: Sequence[Route], scope: Scope) -> tuple[ASGIApp, str]:
    """The endpoint and its operation's name."""
    wrong_method = False
    for route in routes:
        match, child_scope = route.matches(scope)
        # The framework answers HEAD wherever it answers GET; this service does not.
        if match is Match.FULL and scope["method"] != "HEAD":
            scope.update(child_scope)
            return route.handle, route.name
        wrong_method = wrong_method or match is not Match.NONE
    if wrong_method:
        return error_reply(405, "method not allowed"), "unknown"
    return error_reply(404, "path not found"), "unknown"


def _turned_away(headers: Headers, sandbox: Sandbox | None, operation: str) -> Response | None:
    sandbox_id, port = headers["e2b-sandbox-id"], headers.get("e2b-sandbox-port", "")
    if not port.isdecimal():
        return PlainTextResponse("Invalid host", 400)
    if sandbox is None or sandbox.state != "running":
        message = "The sandbox was not found"
        return JSONResponse({"sandboxId": sandbox_id, "message": message, "code": 502}, 502)
    if port not in _PORTS:
        message = "The sandbox is running but port is not open"
        body = {"sandboxId": sandbox_id, "message": message, "port": int(port), "code": 502}
        return JSONResponse(body, 502)
    traffic_token = sandbox.traffic_token if port == INTERPRETER_PORT else None
    if traffic_token is not None and headers.get("e2b-traffic-access-token") != traffic_token:
        return error_reply(403, "Missing or invalid traffic access token")
    token = headers.get("x-access-token")
    if token is None and (operation == "health" or operation in _TOKEN_OPTIONAL):
        return None
    if token != sandbox.envd_token:
        return error_reply(401, "unauthorized access, please provide a valid access token")
    return None


async def _serve_until_over(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    sandbox = sandbox_of(scope)
    task = asyncio.current_task()
    assert task is not None
    sandbox.exchanges[task] = exchange_of(scope).connection

    async def watched(message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            # Once the answer is complete, the connection may already carry somebody else's request.
            sandbox.exchanges.pop(task, None)
        await send(message)

    try:
        await app(scope, receive, watched)
    except asyncio.CancelledError:
        if sandbox.state == "running":
            raise
        # The sandbox took its connections with it, this one too; the request ends as if served.
        task.uncancel()
    finally:
        sandbox.exchanges.pop(task, None)
