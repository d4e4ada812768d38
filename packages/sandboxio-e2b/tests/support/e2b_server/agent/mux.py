"""Many streams over one pair of pipes.

A frame is two 4-byte lengths, a JSON header and raw bytes. The host opens streams; the bytes of each
are held to a window of credit in both directions, so that no stream waits for the reader of another
and nothing is collected without bound.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

__all__ = ["CREDIT", "PIECE", "WINDOW", "AgentError", "Stream", "StreamClosed", "Wire", "frame"]

PIECE = 32 * 1024
"""The most bytes in one frame."""

WINDOW = 16 * PIECE
"""The most bytes of one stream, in one direction, that nobody has taken yet."""

CREDIT = 4 * PIECE
"""So many bytes are taken before the sender is told."""

_CODES = {
    errno.ENOENT: "not_found",
    errno.EEXIST: "already_exists",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.ENOSPC: "resource_exhausted",
    errno.EDQUOT: "resource_exhausted",
}

Handler = Callable[..., Awaitable[Any]]


class AgentError(Exception):
    """A refusal that the host passes on."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StreamClosed(Exception):
    """The host has turned away from a stream."""


def frame(header: Mapping[str, Any], data: bytes = b"") -> bytes:
    """One frame."""
    text = json.dumps(header).encode()
    return b"".join((len(text).to_bytes(4, "big"), len(data).to_bytes(4, "big"), text, data))


class Stream:
    """One request of the host's, and the bytes that go with it."""

    def __init__(self, wire: Wire, number: int) -> None:
        self._wire = wire
        self._number = number
        self._credit = WINDOW
        self._owed = 0
        self._inbox: deque[bytes] = deque()
        self._complete = False
        self._closed = False
        self._credited = asyncio.Event()
        self._arrived = asyncio.Event()

    def reply(self, value: Any) -> None:
        """Answer while the stream goes on."""
        self.post({"op": "reply", "value": value})

    def post(self, header: dict[str, Any], data: bytes = b"") -> None:
        """Send a frame of this stream."""
        self._wire.post({"id": self._number, **header}, data)

    async def send(self, data: bytes, tag: str = "") -> None:
        """Send bytes; waits while the host does not take them.

        Raises:
            StreamClosed: Nobody will.
        """
        view = memoryview(data)
        while view:
            while self._credit <= 0 and not self._closed:
                self._credited.clear()
                await self._credited.wait()
            if self._closed:
                raise StreamClosed
            piece = view[: min(PIECE, self._credit)]
            view = view[len(piece) :]
            self._credit -= len(piece)
            self.post({"op": "data", "tag": tag}, bytes(piece))

    async def receive(self) -> bytes | None:
        """The next bytes, `None` at their end. Asking says that the ones before have been dealt with."""
        if self._owed >= CREDIT:
            self.post({"op": "credit", "bytes": self._owed})
            self._owed = 0
        while not self._inbox:
            if self._complete:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        data = self._inbox.popleft()
        self._owed += len(data)
        return data

    def take(self, op: str, header: Mapping[str, Any], data: bytes) -> None:
        """Handle a frame of the host's."""
        if op == "data":
            self._inbox.append(data)
            self._arrived.set()
        elif op == "eof":
            self._complete = True
            self._arrived.set()
        elif op == "credit":
            self._credit += header["bytes"]
            self._credited.set()

    def close(self) -> None:
        """Wake whoever sends."""
        self._closed = True
        self._credited.set()


class Wire:
    """Reads frames and runs the handler that a stream's opening names."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        transport: asyncio.WriteTransport,
        handlers: Mapping[str, Handler],
    ) -> None:
        self._reader = reader
        self._transport = transport
        self._handlers = handlers
        self._streams: dict[int, Stream] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._left: set[asyncio.Task[None]] = set()

    def post(self, header: Mapping[str, Any], data: bytes = b"") -> None:
        """Send a frame. What waits to be sent is bounded by the credit of all streams."""
        self._transport.write(frame(header, data))

    async def run(self) -> None:
        """Serve until the host is gone."""
        while True:
            try:
                sizes = await self._reader.readexactly(8)
                header = json.loads(await self._reader.readexactly(int.from_bytes(sizes[:4], "big")))
                data = await self._reader.readexactly(int.from_bytes(sizes[4:], "big"))
            except asyncio.IncompleteReadError:
                return
            self._take(header, data)

    def _take(self, header: dict[str, Any], data: bytes) -> None:
        number, op = header["id"], header["op"]
        if op == "open":
            stream = self._streams[number] = Stream(self, number)
            task = asyncio.get_running_loop().create_task(self._serve(stream, number, header))
            self._tasks[number] = task
        elif op == "cancel":
            stream_or_none = self._streams.pop(number, None)
            if stream_or_none is not None:
                stream_or_none.close()
                task = self._tasks.pop(number)
                self._left.add(task)
                task.add_done_callback(self._left.discard)
                task.cancel()
        elif number in self._streams:
            self._streams[number].take(op, header, data)

    async def _serve(self, stream: Stream, number: int, header: Mapping[str, Any]) -> None:
        try:
            value = await self._handlers[header["kind"]](stream, **header["args"])
        except AgentError as exc:
            answer = {"op": "error", "code": exc.code, "message": exc.message}
        except OSError as exc:
            code = _CODES.get(exc.errno or 0, "internal")
            where = f" {os.fsdecode(exc.filename)}" if exc.filename is not None else ""
            answer = {"op": "error", "code": code, "message": f"{os.strerror(exc.errno or 0).lower()}{where}"}
        except Exception:
            answer = {"op": "error", "code": "internal", "message": traceback.format_exc()}
        else:
            answer = {"op": "end", "value": value}
        if self._streams.pop(number, None) is not None:
            self._tasks.pop(number, None)
            stream.post(answer)
        stream.close()
