"""A byte stream over a raw, non-blocking socket.

It belongs to no event loop, so a sandbox can be used from several; every await can be cancelled
without losing a byte in either direction.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Final, Protocol

import anyio
import anyio.lowlevel

__all__ = ["CHUNK", "ByteStream", "SocketStream", "send_all"]

_UNBROKEN_CALLS: Final = 8

CHUNK: Final = 256 * 1024
"""The most that is read at once, in bytes."""


class ByteStream(Protocol):
    """Bytes in both directions."""

    async def receive(self) -> bytes:
        """Some bytes, at most `CHUNK`; empty at the end."""
        ...

    def receive_nowait(self) -> bytes | None:
        """What is there already, empty at the end, or `None` when nothing is there."""
        ...

    async def send(self, data: memoryview) -> int:
        """Send some of `data` and return how much.

        What a cancelled call had taken is reported by the next one, which gets the same bytes.

        Raises:
            BrokenResourceError: The other side is gone.
        """
        ...

    async def send_eof(self) -> None:
        """Say that nothing more will be sent, and keep receiving."""
        ...

    def abort(self) -> None:
        """Break the connection off, so that whoever waits on either side sees its end. Never raises."""
        ...

    def close(self) -> None:
        """Give the connection back. Idempotent; never raises."""
        ...


async def send_all(stream: ByteStream, data: bytes) -> None:
    """Send all of `data`.

    Raises:
        BrokenResourceError: The other side is gone.
    """
    view = memoryview(data)
    while view:
        view = view[await stream.send(view) :]


class SocketStream:
    """A `ByteStream` over a connected socket.

    Args:
        sock: The socket; it is made non-blocking.
        on_close: Called once after closing, for what lives behind the socket.
    """

    def __init__(self, sock: socket.socket, on_close: Callable[[], None] | None = None) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._on_close = on_close
        self._unbroken = 0

    async def receive(self) -> bytes:
        """See `ByteStream.receive`."""
        await self._give_way()
        while True:
            data = self.receive_nowait()
            if data is not None:
                return data
            self._unbroken = 0
            await anyio.wait_readable(self._sock)

    def receive_nowait(self) -> bytes | None:
        """See `ByteStream.receive_nowait`."""
        try:
            return self._sock.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return None

    async def send(self, data: memoryview) -> int:
        """See `ByteStream.send`."""
        await self._give_way()
        while True:
            sent = self.send_nowait(data)
            if sent is not None:
                return sent
            self._unbroken = 0
            await self.wait_writable()

    def send_nowait(self, data: memoryview | bytearray) -> int | None:
        """Send what fits right now, or return `None` when nothing does."""
        try:
            return self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as exc:
            raise anyio.BrokenResourceError from exc

    async def _give_way(self) -> None:
        """Let the event loop turn when nothing has had to wait for a while; it costs more than a read."""
        self._unbroken += 1
        if self._unbroken >= _UNBROKEN_CALLS:
            self._unbroken = 0
            await anyio.lowlevel.checkpoint()

    async def wait_writable(self) -> None:
        """Wait until the socket takes bytes, or is broken."""
        await anyio.wait_writable(self._sock)

    async def send_eof(self) -> None:
        """See `ByteStream.send_eof`."""
        await anyio.lowlevel.checkpoint()
        with contextlib.suppress(OSError):  # the other side may have closed first
            self._sock.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """See `ByteStream.abort`."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `ByteStream.close`."""
        if self._sock.fileno() < 0:
            return
        with contextlib.suppress(Exception):  # outside an event loop there is nobody to notify
            anyio.notify_closing(self._sock)
        self._sock.close()
        if self._on_close is not None:
            self._on_close()
