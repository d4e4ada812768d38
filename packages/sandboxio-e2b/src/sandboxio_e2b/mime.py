"""The results of the code interpreter as outputs with a MIME type."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from sandboxio.models import RichOutput

__all__ = ["rich_outputs"]

_TEXTS: Final = {
    "text": "text/plain",
    "html": "text/html",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
    "latex": "text/latex",
    "javascript": "application/javascript",
}
_BINARIES: Final = {"png": "image/png", "jpeg": "image/jpeg", "pdf": "application/pdf"}
_OBJECTS: Final = {
    "json": "application/json",
    "data": "application/vnd.e2b.data+json",
    "chart": "application/vnd.e2b.chart+json",
}


def rich_outputs(message: Mapping[str, Any]) -> Iterator[RichOutput]:
    """Each representation that a `result` message holds, the plain text first.

    What is not of the form that it should have is left out: the sandbox makes it.

    Example: `list(rich_outputs({"type": "result", "text": "1", "html": "<b>1</b>"}))` has two entries.
    """
    for key, mime_type in _TEXTS.items():
        if isinstance(value := message.get(key), str):
            yield RichOutput(mime_type, _valid(value))
    for key, mime_type in _BINARIES.items():
        if isinstance(value := message.get(key), str):
            yield from _decoded(mime_type, value)
    for key, mime_type in _OBJECTS.items():
        if (value := message.get(key)) is not None:
            yield RichOutput(mime_type, json.dumps(value))
    extra = message.get("extra")
    others = cast(dict[str, Any], extra) if isinstance(extra, dict) else {}
    for mime_type, value in others.items():
        yield RichOutput(_valid(mime_type), _valid(value) if isinstance(value, str) else json.dumps(value))


def _decoded(mime_type: str, value: str) -> Iterator[RichOutput]:
    try:
        yield RichOutput(mime_type, base64.b64decode(value))
    except ValueError:
        return


def _valid(text: str) -> str:
    """Without the lone surrogates that JSON can carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()
