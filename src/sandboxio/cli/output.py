"""What the commands write: text for people or one JSON document, errors on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from sandboxio.cli.faults import print_traceback, summary
from sandboxio.cli.stdio import note, show
from sandboxio.logs import debugging

if TYPE_CHECKING:
    from sandboxio import SandboxError
    from sandboxio.redaction import Redactor

__all__ = ["Output", "Style", "printable"]

Style = Literal["good", "bad", "warn", "strong", "faint"]

_CODES: Final[Mapping[Style, str]] = {
    "good": "32",
    "bad": "31",
    "warn": "33",
    "strong": "1",
    "faint": "2",
}


class Output:
    """Standard output holds the payload alone: lines of text, or one JSON document at the end.

    Args:
        as_json: Whether the document is wanted; lines are then not printed.

    Attributes:
        as_json: The same.
        document: What the JSON document will hold; commands fill it as they go.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.document: dict[str, Any] = {}
        self.as_json = as_json
        self._coloured = _wants_colour(sys.stdout)
        self._redaction: Redactor | None = None

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Replace these values in every error that is shown."""
        from sandboxio.redaction import Redactor

        self._redaction = Redactor(secrets)

    def line(self, text: str = "") -> None:
        """Print a line of text at once, unless JSON is wanted.

        Raises:
            Unwritable: Standard output takes nothing any more.
        """
        if not self.as_json:
            show(text)

    def finish(self, *, ok: bool) -> None:
        """Print the document, if it is wanted, with `ok` in it.

        Raises:
            Unwritable: Standard output takes nothing any more.
        """
        if self.as_json:
            import json

            show(json.dumps({**self.document, "ok": ok}, indent=2))

    def styled(self, text: str, style: Style) -> str:
        """The text in a colour, where colours are shown."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._coloured else text

    def note(self, text: str) -> None:
        """Print a line on standard error, if that can still be written."""
        note(text)

    def warning(self, message: Warning | str) -> None:
        """Print a warning of the library in one line on standard error."""
        self.note(printable(f"warning: {self._redacted(str(message))}"))

    def error(self, exc: SandboxError) -> None:
        """Print an error's three lines, after its traceback with `SBX_DEBUG=1`, and document it."""
        self._trace(exc)
        self.document["error"] = {
            "code": exc.code,
            "message": self._redacted(exc.message),
            "hint": self._redacted(exc.hint),
            "url": exc.url,
        }
        self.note(printable(self._redacted(str(exc))))

    def fault(self, exc: Exception) -> None:
        """Print one line about an error that nobody expected, or its traceback with `SBX_DEBUG=1`."""
        words = self._redacted(summary(exc))
        hint = "set SBX_DEBUG=1 to see where it happened"
        self.document["error"] = {"code": None, "message": words, "hint": hint, "url": None}
        if debugging():
            self._trace(exc)
        else:
            self.note(printable(f"sandboxio: {words}; {hint}"))

    def _trace(self, exc: Exception) -> None:
        if debugging():
            print_traceback(exc, redact=self._redaction.text if self._redaction else None)

    def _redacted(self, text: str) -> str:
        return self._redaction.text(text) if self._redaction else text


def printable(text: str) -> str:
    """The text without what could steer a terminal; line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
