"""Bytes between this process and one in a sandbox, without ever blocking the event loop on a pipe."""

from __future__ import annotations

import errno
import os
import select
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.lowlevel

from sandboxio.cli.output import Output
from sandboxio.cli.stdio import Unwritable

if TYPE_CHECKING:
    from sandboxio import OutputChunk, Process

__all__ = ["Captured", "Live", "feed", "piped_input", "standard_input"]

_READ_BYTES: Final = 64 * 1024
_CAPTURED_BYTES: Final = 16 * 1024 * 1024
_INPUT_HINT: Final = "pipe something in that can be read, or give it /dev/null"


class Live:
    """Passes output on as it comes."""

    def __init__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._outlets = {
            "stdout": _Outlet("standard output", sys.stdout.fileno()),
            "stderr": _Outlet("standard error", sys.stderr.fileno()),
        }

    async def take(self, chunk: OutputChunk) -> None:
        """Write a chunk.

        Raises:
            Unwritable: The stream takes nothing any more.
        """
        await self._outlets[chunk.stream].write(chunk.data)

    def show_in(self, output: Output) -> None:
        """Add nothing: it was shown as it came."""


class Captured:
    """Keeps output for the JSON document, up to a bound that hostile output cannot move."""

    def __init__(self) -> None:
        self._kept: dict[Literal["stdout", "stderr"], bytearray] = {
            "stdout": bytearray(),
            "stderr": bytearray(),
        }
        self._truncated = False

    async def take(self, chunk: OutputChunk) -> None:
        """Keep a chunk, or what of it still fits."""
        kept = self._kept[chunk.stream]
        room = _CAPTURED_BYTES - len(kept)
        kept += chunk.data[:room]
        self._truncated = self._truncated or len(chunk.data) > room

    def show_in(self, output: Output) -> None:
        """Add `stdout`, `stderr` and `truncated` to the document."""
        texts: dict[str, Any] = {
            name: bytes(kept).decode(errors="replace") for name, kept in self._kept.items()
        }
        output.document.update(texts, truncated=self._truncated)


def standard_input() -> int | None:
    """The descriptor of standard input, or `None` where there is none."""
    if sys.stdin is None or sys.stdin.closed:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    try:
        return sys.stdin.fileno()
    except OSError:  # it was replaced by something that is no file
        return None


def piped_input() -> int | None:
    """The descriptor of standard input where something is piped into it, and `None` at a terminal.

    One that is open for writing alone, as `nohup` makes it, has nothing in it either.

    Raises:
        ConfigurationError: It cannot be read, such as a folder.
    """
    from sandboxio import ConfigurationError

    descriptor = standard_input()
    if descriptor is None or os.isatty(descriptor):
        return None
    try:
        os.read(descriptor, 0)
    except OSError as exc:
        if exc.errno == errno.EBADF:
            return None
        raise ConfigurationError(_unread(exc), hint=_INPUT_HINT) from exc
    return descriptor


async def feed(process: Process, descriptor: int) -> None:
    """Pass standard input on to its end. A process that no longer reads it is no failure.

    Raises:
        FileSystemError: It could be read no further. What the process has of it is not all.
    """
    from sandboxio import FileSystemError, SandboxError

    try:
        while data := await _read(descriptor):
            await process.write(data)
        await process.close_stdin()
    except SandboxError:  # whatever it is, the reader of the output meets it as well
        return
    except OSError as exc:
        raise FileSystemError(_unread(exc), hint=_INPUT_HINT) from exc


async def _read(descriptor: int) -> bytes:
    try:
        await anyio.wait_readable(descriptor)
    except (PermissionError, ValueError):  # a file on disk, which cannot be waited for and never blocks
        await anyio.lowlevel.checkpoint()
    return os.read(descriptor, _READ_BYTES)


def _unread(reason: OSError) -> str:
    return f"standard input cannot be read: {reason.strerror or reason}"


class _Outlet:
    """A descriptor to write to, at the pace of whoever reads it."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor
        self._paced = True

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            await self._ready()
            # A pipe that is ready takes this much without blocking.
            part = rest[: select.PIPE_BUF] if self._paced else rest
            try:
                written = os.write(self._descriptor, part)
            except OSError as exc:
                raise Unwritable(self._name, exc) from exc
            rest = rest[written:]

    async def _ready(self) -> None:
        if self._paced:
            try:
                await anyio.wait_writable(self._descriptor)
                return
            except (PermissionError, ValueError):  # a file on disk, as above
                self._paced = False
        await anyio.lowlevel.checkpoint()
