"""The standard streams of this process, in whatever state it was given them: closed, full or abandoned."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

__all__ = ["Unwritable", "drain", "note", "prepare", "show"]


class Unwritable(Exception):
    """A standard stream takes nothing any more, so the rest of what was to be written is lost.

    Args:
        stream: Its name, such as `standard output`.
        reason: Why it could not be written.

    Attributes:
        reader_gone: Whether it is a pipe that nobody reads any more.

    Example: `raise Unwritable("standard output", exc) from exc`
    """

    def __init__(self, stream: str, reason: OSError) -> None:
        super().__init__(f"{stream} cannot be written: {reason.strerror or reason}")
        self.reader_gone = isinstance(reason, BrokenPipeError)


def prepare() -> None:
    """Make the streams usable. To be called before anything is opened, or it could take their place.

    What is written to a closed stream goes nowhere, and what the encoding of standard output lacks is
    written as an escape.
    """
    for descriptor in range(3):
        _occupy(descriptor)
    # The interpreter sets them to None where the descriptor was closed at its start.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print a line on standard output at once.

    Raises:
        Unwritable: It could not be written.
    """
    try:
        print(text, flush=True)
    except OSError as exc:
        raise Unwritable("standard output", exc) from exc


def note(text: str, *, end: str = "\n") -> None:
    """Print a line on standard error at once. One that cannot be written is no failure of the command."""
    with suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


def drain() -> None:
    """Write what is still to be written. To be called last.

    What cannot be is dropped: the interpreter would try again as it exits, and fail over it.

    Raises:
        Unwritable: Something was left for standard output that could not be written.
    """
    _flush(sys.stderr)
    failure = _flush(sys.stdout)
    if failure is not None:
        raise Unwritable("standard output", failure) from failure


def _occupy(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:  # it is closed, and so the lowest that is free
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")


def _flush(stream: TextIO) -> OSError | None:
    try:
        stream.flush()
    except OSError as exc:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return exc
    return None
