"""Requests over HTTP that a signal ends in order, so that nothing has to be torn from the server."""

from __future__ import annotations

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Interruptible"]


class Interruptible:
    """Turns requests away or ends them when it is told to.

    What is turned away is answered 503, and what is cut off gets the end of its response.

    Args:
        app: Who answers the requests.

    Example: `app = Interruptible(app)`
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_progress: set[anyio.CancelScope] = set()
        self._refusing = False

    def refuse(self) -> None:
        """Turn further requests away, and let those in progress go on."""
        self._refusing = True

    def interrupt(self) -> None:
        """Turn further requests away, and end those in progress."""
        self._refusing = True
        for scope in self._in_progress:
            scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, for as long as it may take."""
        response = _Response(send)
        with anyio.CancelScope() as progress:
            self._in_progress.add(progress)
            try:
                if not self._refusing:
                    await self._app(scope, receive, response.send)
            finally:
                self._in_progress.discard(progress)
        if self._refusing:
            await response.end(scope, receive)


class _Response:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._ended = False

    async def send(self, message: Message) -> None:
        await self._send(message)
        self._started = True
        self._ended = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def end(self, scope: Scope, receive: Receive) -> None:
        if not self._started:
            await PlainTextResponse("the server is about to end", 503)(scope, receive, self._send)
        elif not self._ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
