"""Removing secrets, by value, from everything that leaves an operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["RedactedError", "Redactor"]

MASK: Final = "[redacted]"
_CHAIN_LIMIT: Final = 20
_OS_ERROR_TEXTS: Final = ("strerror", "filename", "filename2")


class Redactor:
    """Replaces every known secret value by a mask, longest first.

    Example: `Redactor({"TOKEN": "s3cr3t"}).text("got s3cr3t")` is `"got [redacted]"`.
    """

    __slots__ = ("_values",)

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        values = set((secrets or {}).values()) - {""}
        self._values = tuple(sorted(values, key=len, reverse=True))

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._values)} values>"

    def text(self, text: str) -> str:
        """The text without any secret."""
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return text

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Each of the texts without any secret."""
        return tuple(self.text(text) for text in texts)

    def error(self, exc: BaseException) -> None:
        """Clean an exception in place, with its notes and with all that it was raised from.

        What will not let itself be cleaned is replaced, along the chain, by a stand-in.
        """
        if not self._values:
            return
        seen: set[int] = set()
        pending: list[BaseException] = [exc]
        while pending and len(seen) < _CHAIN_LIMIT:
            current = pending.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            self._clean(current)
            for link in ("__cause__", "__context__"):
                origin: BaseException | None = getattr(current, link)
                if origin is None:
                    continue
                self._clean(origin)
                if self._holds_secret(origin):
                    origin = RedactedError(f"{type(origin).__name__}: {self.text(str(origin))}")
                    setattr(current, link, origin)
                pending.append(origin)

    def _clean(self, exc: BaseException) -> None:
        exc.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in exc.args)
        names = {*vars(exc), *(_OS_ERROR_TEXTS if isinstance(exc, OSError) else ())}
        for name in names:
            value: object = getattr(exc, name, None)
            if isinstance(value, str):
                setattr(exc, name, self.text(value))
        notes: list[str] | None = getattr(exc, "__notes__", None)
        if notes:
            notes[:] = self.texts(notes)

    def _holds_secret(self, exc: BaseException) -> bool:
        shown = f"{exc} {exc!r}"
        return any(value in shown for value in self._values)


class RedactedError(Exception):
    """Stands for an exception whose own text held a secret and could not be cleaned."""
