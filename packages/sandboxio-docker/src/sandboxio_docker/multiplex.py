"""The engine's multiplexed stream: frames of an 8-byte header and a payload, on one connection."""

from __future__ import annotations

from typing import Final, Literal

from sandboxio.models import OutputChunk
from sandboxio_docker.stream import ByteStream

__all__ = ["FrameReader"]

_HEADER: Final = 8
_STREAMS: Final[dict[int, Literal["stdout", "stderr"]]] = {0: "stdout", 1: "stdout", 2: "stderr"}


class FrameReader:
    """Reads frames on demand and hands out their payloads in pieces.

    A frame is never collected whole, so a size that lies costs nothing, and what nobody asks for
    stays in the socket, where it holds up the one who writes.

    Args:
        stream: The connection.
        leftover: Bytes that were read from it already.
    """

    def __init__(self, stream: ByteStream, leftover: bytes = b"") -> None:
        self._stream = stream
        self._buffer = leftover
        self._position = 0
        self._name: Literal["stdout", "stderr"] = "stdout"
        self._missing = 0
        self._ended = False

    async def receive(self) -> OutputChunk | None:
        """The next piece, at most a socket read long, or `None` at the end of the connection.

        Raises:
            ValueError: The bytes are no frames.
        """
        while True:
            chunk = self._parse()
            if chunk is not None:
                return chunk
            if self._ended:
                return None
            self._buffer, self._position = self._buffer[self._position :], 0
            data = await self._stream.receive()
            self._ended = not data
            self._buffer = self._buffer + data

    def _parse(self) -> OutputChunk | None:
        """Take from the buffer as many payloads of one stream as follow each other."""
        buffer, position, end = self._buffer, self._position, len(self._buffer)
        view = memoryview(buffer)
        pieces: list[memoryview] = []
        while True:
            if self._missing:
                piece = view[position : position + self._missing]
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
                self._missing -= len(piece)
                continue
            if end - position < _HEADER:
                break
            name = _STREAMS.get(buffer[position])
            if name is None or buffer[position + 1 : position + 4] != b"\0\0\0":
                raise ValueError("the engine's stream holds something that is no frame")
            if pieces and name != self._name:
                break
            self._name = name
            self._missing = int.from_bytes(buffer[position + 4 : position + _HEADER], "big")
            position += _HEADER
        self._position = position
        return OutputChunk(self._name, b"".join(pieces)) if pieces else None
