"""Pipes on the event loop, without a buffer beyond the kernel's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from typing import IO

from .mux import PIECE

__all__ = ["PipeClosed", "PipeWriter", "any_readable", "read_now"]


class PipeClosed(Exception):
    """Nobody can write to this pipe any more."""


def read_now(fd: int, size: int = PIECE) -> bytes | None:
    """What can be read without waiting, empty at the end, or `None` when nothing is there."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None


async def any_readable(fds: Iterable[int], event: asyncio.Future[None] | None = None) -> None:
    """Wait until one of the descriptors can be read or is at its end, or the event has come."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(*_: object) -> None:
        if not woken.done():
            woken.set_result(None)

    watched = list(fds)
    for fd in watched:
        loop.add_reader(fd, wake)
    if event is not None:
        event.add_done_callback(wake)
    try:
        await woken
    finally:
        for fd in watched:
            loop.remove_reader(fd)
        if event is not None:
            event.remove_done_callback(wake)


class PipeWriter:
    """The writing end of a pipe. Writes take turns; closing breaks off the one that waits."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        os.set_blocking(self._fd, False)
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Write all of it.

        Raises:
            PipeClosed: It is closed, or nobody reads it any more.
        """
        async with self._turn:
            view = memoryview(data)
            while view:
                if self._fd < 0:
                    raise PipeClosed("the pipe is closed")
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:
                    await self._writable()
                except BrokenPipeError as exc:
                    raise PipeClosed("broken pipe") from exc

    def close(self) -> None:
        """Let the reader see the end. Idempotent."""
        if self._fd < 0:
            return
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().remove_writer(self._fd)
        self._fd = -1
        self._pipe.close()
        self._wake()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        fd = self._fd
        loop.add_writer(fd, self._wake)
        try:
            await self._waiting
        finally:
            if self._fd == fd:
                loop.remove_writer(fd)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
