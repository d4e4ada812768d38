"""How an error is shown: its own words, and with `SBX_DEBUG=1` where it came from."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

from sandboxio.cli.stdio import note

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["alone", "print_traceback", "summary"]


def alone(exc: Exception) -> Exception:
    """The error itself, where it is the only one in the groups that task groups put around it."""
    given: object = exc
    if isinstance(given, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", given).exceptions
        if len(members) == 1:
            return alone(members[0])
    return exc


def summary(exc: BaseException) -> str:
    """One line about an error that nobody expected."""
    text = " ".join(str(exc).split())
    words = f"unexpected {type(exc).__name__}"
    return f"{words}: {text}" if text else words


def print_traceback(exc: BaseException, *, redact: Callable[[str], str] | None) -> None:
    """Print a traceback on standard error: a rich one where rich is installed, else a plain one.

    Values of variables are never shown: secrets are among them.

    Args:
        exc: What was raised.
        redact: Takes secrets out of a text. A rich traceback cuts a text into coloured pieces in
            which no secret would be found, so it is not used together with this.
    """
    if redact is None and _printed_richly(exc, sys.stderr):
        return
    import traceback

    text = "".join(traceback.format_exception(exc))
    note(redact(text) if redact is not None else text, end="")


def _printed_richly(exc: BaseException, stream: TextIO) -> bool:
    try:
        from rich.console import Console
        from rich.traceback import Traceback
    except ImportError:
        return False
    console = Console(file=stream)
    with suppress(OSError):
        console.print(Traceback.from_exception(type(exc), exc, exc.__traceback__, show_locals=False))
    return True
