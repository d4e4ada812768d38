"""Bytes between this process and one in a sandbox, without ever blocking the event loop on a pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.lowlevel

from sandboxio.cli.output import Output

if TYPE_CHECKING:
    from sandboxio import OutputChunk, Process

__all__ = ["Captured", "Live", "feed", "piped_input", "read_all", "standard_input"]

# What a pipe that poll() calls writable takes at once, whatever its size; see pipe(7).
_ATOMIC_BYTES: Final = 4096
_READ_BYTES: Final = 64 * 1024
_CAPTURED_BYTES: Final = 16 * 1024 * 1024


class Live:
    """Passes output on as it comes."""

    def __init__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._outlets = {"stdout": _Outlet(sys.stdout.fileno()), "stderr": _Outlet(sys.stderr.fileno())}

    async def take(self, chunk: OutputChunk) -> None:
        """Write a chunk.

        Raises:
            BrokenPipeError: Nobody reads it any more.
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
    """The descriptor of standard input where something is piped into it, and `None` at a terminal."""
    descriptor = standard_input()
    return None if descriptor is None or os.isatty(descriptor) else descriptor


async def feed(process: Process, descriptor: int) -> None:
    """Pass standard input on to its end. A process that no longer reads it is no failure."""
    from sandboxio import SandboxError

    try:
        while data := await _read(descriptor):
            await process.write(data)
        await process.close_stdin()
    except SandboxError:  # whatever it is, the reader of the output meets it as well
        return


async def read_all(descriptor: int) -> bytes:
    """All of standard input, up to its end."""
    parts: list[bytes] = []
    while data := await _read(descriptor):
        parts.append(data)
    return b"".join(parts)


async def _read(descriptor: int) -> bytes:
    try:
        await anyio.wait_readable(descriptor)
    except (PermissionError, ValueError):  # a file on disk, which cannot be waited for and never blocks
        await anyio.lowlevel.checkpoint()
    return os.read(descriptor, _READ_BYTES)


class _Outlet:
    """A descriptor to write to, at the pace of whoever reads it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._paced = True

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            await self._ready()
            part = rest[:_ATOMIC_BYTES] if self._paced else rest
            rest = rest[os.write(self._descriptor, part) :]

    async def _ready(self) -> None:
        if self._paced:
            try:
                await anyio.wait_writable(self._descriptor)
                return
            except (PermissionError, ValueError):  # a file on disk, as above
                self._paced = False
        await anyio.lowlevel.checkpoint()
