"""The code interpreter's messages as they come: JSON lines, of which hostile code decides the length."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, cast

__all__ = ["LINE_LIMIT_BYTES", "TOO_LONG", "read_messages"]

LINE_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""The longest line that is kept; one message holds at most what one `print` wrote."""

TOO_LONG: Final[Mapping[str, Any]] = {"type": "sandboxio.too_long"}
"""Stands for the rest of a line that was too long."""

_HARMLESS_BYTES: Final = 256 * 1024
_MOST_CONTAINERS: Final = 50_000
_MOST_VALUES: Final = 500_000

_TEXT_BEGIN: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"(stdout|stderr)"\s*,\s*"text"\s*:\s*"')
_WHOLE_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')


async def read_messages(chunks: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Each line as a message. Of a text that is too long its beginning comes, and then `TOO_LONG`.

    Raises:
        json.JSONDecodeError: A line is no JSON object.

    Example: `async for message in read_messages(response.aiter_bytes()): ...`
    """
    line = bytearray()
    skipping = False
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not skipping:
                line += end
                if line.strip():
                    yield _parse(bytes(line))
            line.clear()
            skipping = False
        if skipping:
            continue
        line += rest
        if len(line) > LINE_LIMIT_BYTES:
            beginning = _beginning_of_text(bytes(line))
            if beginning is not None:
                yield beginning
            yield TOO_LONG
            line.clear()
            skipping = True
    if line.strip() and not skipping:
        yield _parse(bytes(line))


def _parse(line: bytes) -> Mapping[str, Any]:
    if _is_bomb(line):
        return TOO_LONG
    try:
        message: object = json.loads(line)
    except (ValueError, RecursionError) as exc:  # no UTF-8, a number without end, nested without end
        raise json.JSONDecodeError(f"a message of the code interpreter is no JSON: {exc}", "", 0) from exc
    if isinstance(message, dict):
        return cast(dict[str, Any], message)
    raise json.JSONDecodeError("a message of the code interpreter is no object", "", 0)


def _is_bomb(line: bytes) -> bool:
    """Whether it would take seconds and memory to parse, for a value that the caller is not given whole."""
    if len(line) < _HARMLESS_BYTES or _TEXT_BEGIN.match(line):
        return False
    return line.count(b"[") + line.count(b"{") > _MOST_CONTAINERS or line.count(b",") > _MOST_VALUES


def _beginning_of_text(line: bytes) -> Mapping[str, Any] | None:
    """The text up to its end, or up to the character that was cut."""
    found = _TEXT_BEGIN.match(line)
    if found is None:
        return None
    whole = _WHOLE_TEXT.match(line, found.end())
    text = whole[0].decode("utf-8", "ignore") if whole else ""
    decoded: str = json.loads(f'"{text}"', strict=False)
    return {
        "type": found[1].decode(),
        "text": decoded.encode("utf-16", "surrogatepass").decode("utf-16", "ignore"),
    }
