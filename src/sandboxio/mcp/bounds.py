"""How much a tool answers. A model pays for every character, and a flood would push out what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "MAX_ENTRIES",
    "MAX_FILE_BYTES",
    "MAX_IMAGES",
    "MAX_IMAGE_BYTES",
    "MAX_INLINE_BYTES",
    "MAX_OUTPUTS",
    "MAX_OUTPUT_TEXT",
    "MAX_TEXT",
    "Page",
    "middle_cut",
    "page_of",
]

MAX_TEXT: Final = 30_000
"""Characters of a stream, or of a file, in one answer."""

MAX_OUTPUT_TEXT: Final = 8_000
"""Characters of one rich output of a cell."""

MAX_OUTPUTS: Final = 20
"""Rich outputs of one cell."""

MAX_IMAGES: Final = 4
"""Pictures in one answer."""

MAX_IMAGE_BYTES: Final = 1024 * 1024
"""Bytes of a picture."""

MAX_INLINE_BYTES: Final = 24 * 1024
"""Bytes of a file that is neither text nor a picture; a third more as base64."""

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a file that is read at all."""

MAX_ENTRIES: Final = 500
"""Entries of a directory in one answer."""


@dataclass(frozen=True, slots=True)
class Page:
    r"""A part of a text.

    Attributes:
        text: The lines, whole unless the first one alone is too long.
        next_line: The number of the line that follows, counted from 1; `None` at the end.
        total_lines: How many lines the whole text has.

    Example: `page_of("a\nb\n", first=2).text` is `"b\n"`.
    """

    text: str
    next_line: int | None
    total_lines: int


def middle_cut(text: str, limit: int = MAX_TEXT) -> str:
    """The text, or its beginning and end around a line that says how much is missing.

    Args:
        text: Any text.
        limit: How many of its characters are kept.

    Example: `middle_cut("a" * 100_000)`
    """
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit - limit // 2) :]
    left_out = len(text) - limit
    advice = "to see them, write the output to a file and read it in parts"
    return f"{head}\n[… {left_out} characters left out here; {advice} …]\n{tail}"


def page_of(text: str, *, first: int = 1, limit: int = MAX_TEXT) -> Page:
    """As many whole lines as fit, beginning with line `first`.

    Args:
        text: The whole text.
        first: The number of the first line, counted from 1.
        limit: How many characters fit. A first line that is longer is cut.

    Example: `page_of(text, first=page.next_line)` reads on.
    """
    lines = text.splitlines(keepends=True)
    taken: list[str] = []
    size = 0
    for line in lines[first - 1 :]:
        if size + len(line) > limit:
            if not taken:
                taken.append(middle_cut(line, limit))
            break
        taken.append(line)
        size += len(line)
    following = first + len(taken)
    return Page("".join(taken), following if following <= len(lines) else None, len(lines))
