"""A Python program that is read here and runs in a sandbox."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from sandboxio.cli.streams import standard_input

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["read_program"]

_LARGEST_BYTES: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024


async def read_program(file: str) -> bytes:
    """All of a Python file, or of standard input for `-`. Waiting for a pipe can be cancelled.

    Raises:
        ConfigurationError: It cannot be read, or is longer than a program may be.
    """
    from sandboxio import ConfigurationError

    name = "standard input" if file == "-" else file
    try:
        with _opened(file) as source:
            program = b"" if source is None else await _read(source)
    except OSError as exc:
        raise ConfigurationError(
            f"{name} cannot be read: {exc.strerror}", hint="name a Python file, or - for standard input"
        ) from exc
    if len(program) > _LARGEST_BYTES:
        raise ConfigurationError(
            f"{name} is no program: it is longer than {_LARGEST_BYTES >> 20} MiB",
            hint="pass data as standard input or with --upload",
        )
    return program


@contextmanager
def _opened(file: str) -> Generator[int | None]:
    if file == "-":
        yield standard_input()
        return
    # Else opening a named pipe that nobody writes to would hold up the whole loop.
    descriptor = os.open(Path(file), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def _read(descriptor: int) -> bytes:
    """What there is up to the end, and not much more than a program may have."""
    content = bytearray()
    while len(content) <= _LARGEST_BYTES:
        try:
            await anyio.wait_readable(descriptor)
        except (PermissionError, ValueError):  # a file on disk, which cannot be waited for and never blocks
            await anyio.lowlevel.checkpoint()
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:  # another reader of the same pipe was faster
            continue
        if not data:
            break
        content += data
    return bytes(content)
