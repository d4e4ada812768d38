"""Errors as a model reads them: what happened, its code, what the model can do about it, and the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.errors import (
    ExecutionTimeout,
    NetworkPolicyViolation,
    PathNotFound,
    ResourceLimitExceeded,
    SandboxError,
    SandboxGone,
)
from sandboxio.mcp.bounds import middle_cut

__all__ = ["Redaction", "explain"]

MASK: Final = "[redacted]"

# Hints are written for programs that call the library. A model that has another way out is told that one.
_FIXES: Final[Mapping[type[SandboxError], str]] = {
    ExecutionTimeout: "give a larger timeout_seconds, or make the program do less",
    SandboxGone: "call the tool again: it gets a new, empty sandbox; files of the old one are gone",
    PathNotFound: "look at what exists with list_files",
    ResourceLimitExceeded: "use less of what the message names; the caps of this server are fixed",
    NetworkPolicyViolation: "do without this connection; the network policy of this server is fixed",
}


class Redaction:
    """Removes the credentials of this process, by value, from what a model reads.

    Args:
        values: What must never be shown; empty ones count for nothing.

    Example: `Redaction(["t0ken"]).text("got t0ken")` is `"got [redacted]"`.
    """

    def __init__(self, values: Iterable[str | None]) -> None:
        self._values = sorted({value for value in values if value}, key=len, reverse=True)

    @classmethod
    def of_process(cls, token: str | None = None, environment: Mapping[str, str] = os.environ) -> Redaction:
        """What known providers read their credentials from, and the server's own token.

        Example: `Redaction.of_process(options.token)`
        """
        names = (name for row in KNOWN_BACKENDS.values() for name in row.credentials)
        return cls([token, *(environment.get(name) for name in names)])

    def text(self, text: str) -> str:
        """The text without any of the values."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text


def explain(error: SandboxError, note: str = "") -> str:
    """What a model is told about an error, with the output that there was before it.

    Args:
        error: What was raised.
        note: What else it must know, such as that its sandbox is a new one.

    Example: `explain(SandboxGone("its lifetime is over"))`
    """
    fix = next((text for kind, text in _FIXES.items() if isinstance(error, kind)), error.hint)
    parts = [f"[{error.code}] {error.message}", f"Fix: {fix}", f"Docs: {error.url}"]
    if note:
        parts.append(f"Note: {note}")
    if isinstance(error, ExecutionTimeout | ResourceLimitExceeded):
        for name, text in (("stdout", error.partial.stdout), ("stderr", error.partial.stderr)):
            if text:
                parts.append(f"{name} until then:\n{middle_cut(text)}")
    return "\n".join(parts)
