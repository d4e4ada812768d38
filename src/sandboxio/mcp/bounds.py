"""How much a tool answers. A model pays for every character, and a flood would push out what it knows."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

from sandboxio.excerpt import excerpt

__all__ = [
    "LISTING_SECONDS",
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

LISTING_SECONDS: Final = 15.0
"""How long the listing of a directory may take. All its entries have to be read before the first is shown."""


@dataclass(frozen=True, slots=True)
class Page:
    r"""A part of a text.

    Attributes:
        text: The lines, whole unless the first one alone is too long.
        next_line: The number of the line that follows, counted from 1; `None` after the last.
        total_lines: How many lines the whole text has.
        truncated: Whether the one line that is shown was too long and lacks its middle.

    Example: `page_of("a\nb\n", first=2).text` is `"b\n"`.
    """

    text: str
    next_line: int | None
    total_lines: int
    truncated: bool


def middle_cut(text: str, limit: int = MAX_TEXT) -> str:
    """An output, or its beginning and end around a line that says how to see the rest.

    Args:
        text: What was written.
        limit: How many of its characters are kept.

    Example: `middle_cut("a" * 100_000)`
    """
    return excerpt(text, limit, advice="; to see them, write the output to a file and read it in parts")


def page_of(text: str, *, first: int = 1, limit: int = MAX_TEXT) -> Page:
    """As many whole lines as fit, beginning with line `first`. They end where `grep -n` and `sed` end them.

    Args:
        text: The whole text.
        first: The number of the first line, counted from 1.
        limit: How many characters fit. A first line that is longer is cut.

    Example: `page_of(text, first=page.next_line)` reads on.
    """
    taken: list[str] = []
    size = 0
    next_line: int | None = None
    truncated = False
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if number < first:
            continue
        if size + len(line) <= limit:
            taken.append(line)
            size += len(line)
        elif taken:
            next_line = number
            break
        else:
            advice = f" of line {number}; to see them, cut the line with run_command or run_python"
            taken.append(excerpt(line, limit, advice=advice))
            truncated, size = True, limit
    total_lines = text.count("\n") + (text[-1:] not in ("", "\n"))
    return Page("".join(taken), next_line, total_lines, truncated)
