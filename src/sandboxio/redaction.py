"""Removing secrets, by value, from everything that leaves an operation."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from sandboxio.backends import KNOWN_BACKENDS

__all__ = ["RedactedError", "Redactor", "redactor_for"]

_LEAST_CREDENTIAL: Final = 8  # a shorter value is no key, and would mask ordinary words
MASK: Final = "[redacted]"
_CHAIN_LIMIT: Final = 20
_OS_ERROR_TEXTS: Final = ("strerror", "filename", "filename2")


def redactor_for(backend: str, secrets: Mapping[str, str] | None = None) -> Redactor:
    """One that knows, besides, the credentials that this process holds for a known backend.

    Providers and what stands before them repeat a key in their refusals.

    Args:
        backend: The backend's name.
        secrets: More values, by name.

    Example: `redactor_for("e2b").text(answer)`
    """
    known = KNOWN_BACKENDS.get(backend)
    held = [os.environ.get(name, "").strip() for name in (known.credentials if known else ())]
    credentials = [value for value in held if len(value) >= _LEAST_CREDENTIAL]
    return Redactor([*credentials, *(secrets or {}).values()])


class RedactedError(Exception):
    """Stands for an exception whose own text held a secret and could not be cleaned."""


class Redactor:
    """Replaces every known secret by a mask, also where it stands quoted, escaped or put into one line.

    Args:
        secrets: The values; empty ones count for nothing.

    Example: `Redactor(["s3cr3t"]).text("got s3cr3t")` is `"got [redacted]"`.
    """

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if form}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __repr__(self) -> str:
        return f"<Redactor {'active' if self._pattern else 'without secrets'}>"

    def text(self, text: str) -> str:
        """The text without any secret."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Each of the texts without any secret."""
        return tuple(self.text(text) for text in texts)

    def error(self, exc: BaseException) -> None:
        """Clean an exception in place, with its notes and with all that it was raised from.

        What will not let itself be cleaned is replaced, along the chain, by a stand-in. It never
        raises, since it works on an exception that is on its way to the caller.
        """
        if self._pattern is None:
            return
        seen: set[int] = set()
        pending: list[BaseException] = [exc]
        while pending:
            current = pending.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            self._clean(current)
            pending += _members(current)
            for link in ("__cause__", "__context__"):
                origin: BaseException | None = getattr(current, link)
                if origin is None:
                    continue
                if len(seen) >= _CHAIN_LIMIT:
                    setattr(current, link, None)
                    continue
                self._clean(origin)
                if self._shows_secret(origin):
                    origin = RedactedError(type(origin).__name__)
                    setattr(current, link, origin)
                pending.append(origin)

    def _clean(self, exc: BaseException) -> None:
        with contextlib.suppress(Exception):  # a frozen or odd exception; `_shows_secret` sees to it
            if any(isinstance(arg, str) and self.text(arg) != arg for arg in exc.args):
                exc.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in exc.args)
        names = {*vars(exc), *(_OS_ERROR_TEXTS if isinstance(exc, OSError) else ())}
        for name in names:
            with contextlib.suppress(Exception):
                value: object = getattr(exc, name, None)
                if isinstance(value, str) and self.text(value) != value:
                    setattr(exc, name, self.text(value))
        notes: list[str] | None = getattr(exc, "__notes__", None)
        if notes:
            notes[:] = self.texts(notes)

    def _shows_secret(self, exc: BaseException) -> bool:
        try:
            shown = f"{exc} {exc!r}"
        except Exception:  # what cannot be shown here cannot be trusted to be clean elsewhere
            return True
        return self.text(shown) != shown


def _members(exc: BaseException) -> Sequence[BaseException]:
    return cast(Sequence[BaseException], getattr(exc, "exceptions", ())) if _is_group(exc) else ()


def _is_group(exc: BaseException) -> bool:
    return isinstance(exc, BaseExceptionGroup)


def _forms(secret: str) -> Iterable[str]:
    """A secret as it is, as the one line of an error has it, in a Python literal, and in JSON."""
    yield secret
    in_one_line = " ".join(secret.split())
    yield in_one_line
    yield "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in in_one_line)
    literal = repr(secret)[1:-1]
    yield literal
    yield literal.replace("'", "\\'")  # as within a text that has both kinds of quotes
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
