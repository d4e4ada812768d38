"""Errors as a model reads them: what happened, its code, what the model can do about it, and the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.errors import ExecutionTimeout, ResourceLimitExceeded, SandboxError
from sandboxio.mcp.bounds import middle_cut
from sandboxio.mcp.fixes import fix_for
from sandboxio.mcp.text import sendable
from sandboxio.redaction import Redactor

__all__ = ["Redaction", "explain"]


class Redaction:
    """Removes the credentials of this process, by value, from what a model reads.

    Args:
        values: What must never be shown, quoted and escaped neither; empty ones count for nothing.

    Example: `Redaction(["t0ken"]).text("got t0ken")` is `"got [redacted]"`.
    """

    def __init__(self, values: Iterable[str | None]) -> None:
        self._redactor = Redactor(value or "" for value in values)

    @classmethod
    def of_process(cls, token: str | None = None, environment: Mapping[str, str] = os.environ) -> Redaction:
        """What known providers read their credentials from, and the server's own token.

        Example: `Redaction.of_process(options.token)`
        """
        names = (name for row in KNOWN_BACKENDS.values() for name in row.credentials)
        return cls([token, *(environment.get(name) for name in names)])

    def text(self, text: str) -> str:
        """The text without any of the values."""
        return self._redactor.text(text)


def explain(error: SandboxError, note: str = "", *, starting: bool = False) -> str:
    """What a model is told about an error, with the output that there was before it.

    Args:
        error: What was raised.
        note: What else it must know, such as that its sandbox is a new one.
        starting: Whether the error came while a sandbox was being made.

    Example: `explain(SandboxGone("its lifetime is over"))`
    """
    fix = fix_for(error, starting=starting)
    parts = [f"[{error.code}] {error.message}", f"Fix: {fix}", f"Docs: {error.url}"]
    if note:
        parts.append(f"Note: {note}")
    if isinstance(error, ExecutionTimeout | ResourceLimitExceeded):
        for name, text in (("stdout", error.partial.stdout), ("stderr", error.partial.stderr)):
            if text:
                parts.append(f"{name} until then:\n{middle_cut(text)}")
    return sendable("\n".join(parts))
