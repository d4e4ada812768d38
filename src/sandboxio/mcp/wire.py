"""The descriptors of the stdio transport, taken away from everybody else.

Standard output carries the protocol and nothing else, so it is moved to a private descriptor and descriptor
1 becomes standard error, for good: what a library prints, a child process writes or an exit handler says
lands there. Standard input is moved likewise, since a child that reads it would swallow requests.

Both ends wait for readiness instead of blocking in a thread, so a signal ends the server also while its
client is silent or does not read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Self

import anyio
import anyio.lowlevel

__all__ = ["InputLines", "OutputText", "Wire", "claim_stdio"]

READ_SIZE: Final = 65536


@dataclass(frozen=True, slots=True)
class Wire:
    """The private descriptors that the protocol runs over.

    Attributes:
        input_fd: What the client writes to.
        output_fd: What the client reads from.

    Example: `lines = InputLines(claim_stdio().input_fd)`
    """

    input_fd: int
    output_fd: int


def claim_stdio() -> Wire:
    """Move standard input and output to private descriptors that no child process inherits.

    Afterwards descriptor 0 is at its end and descriptor 1 is standard error, or nothing if that is closed.

    Raises:
        OSError: Standard input or output is closed.

    Example: `wire = claim_stdio()`
    """
    wire = Wire(_private_copy(0), _private_copy(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire


class InputLines:
    """The lines that the client sends, to be iterated over once.

    Example: `async for line in InputLines(wire.input_fd): ...`
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = bytearray()
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._pending)
            await _ready(anyio.wait_readable, self._fd)
            data = _read(self._fd)
            self._ended = not data
            self._pending += data
        size = end + 1 if end >= 0 else len(self._pending)
        if not size:
            raise StopAsyncIteration
        line = self._pending[:size].decode("utf-8", "replace")
        del self._pending[:size]
        return line


class OutputText:
    r"""What the client reads.

    Example: `await OutputText(wire.output_fd).write("{}\n")`
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def write(self, text: str) -> None:
        """Write all of it; waits while the client does not read.

        Raises:
            anyio.ClosedResourceError: The client reads no more.
        """
        rest = memoryview(text.encode())
        while rest:
            await _ready(anyio.wait_writable, self._fd)
            try:
                # A pipe that is ready takes this much without blocking.
                written = os.write(self._fd, rest[: select.PIPE_BUF])
            except ConnectionError as exc:  # of a pipe or of a socket
                raise anyio.ClosedResourceError from exc
            rest = rest[written:]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, READ_SIZE)
    except ConnectionResetError:  # a socket whose peer left without having read everything
        return b""


def _private_copy(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


async def _ready(wait: Callable[[int], Awaitable[None]], fd: int) -> None:
    try:
        await wait(fd)
    except OSError as exc:
        if exc.errno != errno.EPERM:
            raise
        # A regular file, which epoll refuses because it is always ready.
        await anyio.lowlevel.checkpoint()
