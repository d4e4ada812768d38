"""One HTTP/1.1 exchange with the engine, on a connection of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import anyio
import h11

from sandboxio_docker.errors import EngineError, EngineTimeout, UnexpectedAnswer
from sandboxio_docker.stream import ByteStream, send_all

__all__ = ["Exchange", "Head"]

_HEAD_LIMIT: Final = 128 * 1024
_ERROR_LIMIT: Final = 64 * 1024
_HTTP_REDIRECT: Final = 300
_HTTP_ERROR: Final = 400


class Head:
    """The start of an answer.

    Attributes:
        status: The HTTP status.
        headers: Names in lower case.
    """

    __slots__ = ("headers", "status")

    def __init__(self, event: h11.Response | h11.InformationalResponse) -> None:
        self.status = event.status_code
        self.headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}


class Exchange:
    """A request and its answer.

    Args:
        stream: A fresh connection, which the exchange owns.
        doing: What is being asked, for messages.
        timeout: Seconds until the answer must have started.
    """

    def __init__(self, stream: ByteStream, doing: str, timeout: float) -> None:
        self.stream = stream
        self._doing = doing
        self._timeout = timeout
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT)
        self._reset: Exception | None = None

    async def send_head(self, method: str, target: str, headers: Mapping[str, str]) -> None:
        """Send the request line and headers."""
        request = h11.Request(
            method=method, target=target, headers=[("Host", "docker"), *((k, v) for k, v in headers.items())]
        )
        await self._send(self._http.send(request))

    async def send_body(self, data: bytes) -> None:
        """Send a piece of the body."""
        await self._send(self._http.send(h11.Data(data=data)))

    async def end_request(self) -> None:
        """Say that the request is complete."""
        await self._send(self._http.send(h11.EndOfMessage()))

    async def head(self) -> Head:
        """Wait for the start of the answer.

        Raises:
            EngineTimeout: It did not come in time.
            EngineError: It is an error.
        """
        try:
            with anyio.fail_after(self._timeout):
                head = await self._receive_head()
        except TimeoutError as exc:
            raise EngineTimeout(self._doing, self._timeout) from exc
        if head.status >= _HTTP_ERROR:
            raise EngineError(head.status, await self._error_text())
        if head.status >= _HTTP_REDIRECT:
            raise UnexpectedAnswer(f"it answers {self._doing} with the status {head.status}")
        return head

    async def piece(self) -> bytes | None:
        """Some of the answer's body as it comes, or `None` at its end."""
        event = await self._next_event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def read_body(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            EngineError: It is larger than `limit` bytes.
            EngineTimeout: It did not come in time.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            with anyio.fail_after(self._timeout):
                while (piece := await self.piece()) is not None:
                    size += len(piece)
                    if size > limit:
                        raise UnexpectedAnswer(f"the answer to {self._doing} is larger than {limit} bytes")
                    pieces.append(piece)
        except TimeoutError as exc:
            raise EngineTimeout(self._doing, self._timeout) from exc
        return b"".join(pieces)

    def feed_lines(self, data: bytes) -> int:
        """Take bytes of an answer that nobody awaits, and count the lines they complete."""
        self._http.receive_data(data)
        lines = 0
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Data):
                lines += bytes(event.data).count(b"\n")
            elif not isinstance(event, h11.Response):
                return lines

    def leftover(self) -> bytes:
        """After a switch of protocols: what arrived behind the answer's head."""
        return self._http.trailing_data[0]

    def close(self) -> None:
        """Give the connection back."""
        self.stream.close()

    async def _send(self, data: bytes | None) -> None:
        if not data or self._reset is not None:
            return
        try:
            await send_all(self.stream, data)
        except anyio.BrokenResourceError as exc:
            self._reset = exc  # an engine that refuses a body closes early; its answer says why

    async def _receive_head(self) -> Head:
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return Head(event)
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return Head(event)
            if isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                raise ConnectionResetError(
                    f"the engine closed the connection instead of answering {self._doing}"
                )

    async def _next_event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self.stream.receive())

    async def _error_text(self) -> str:
        raw = await self.read_body(_ERROR_LIMIT)
        try:
            answer: Any = json.loads(raw)
            return str(answer["message"])
        except (ValueError, KeyError, TypeError):
            return raw.decode("utf-8", "replace")
