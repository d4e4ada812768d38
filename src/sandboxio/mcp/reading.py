"""How a file is shown to a model: text in pages, pictures as pictures, the rest as base64 or not at all."""

from __future__ import annotations

import base64
import mimetypes
from typing import Final

from mcp_types import CallToolResult

from sandboxio.mcp.bounds import MAX_INLINE_BYTES, page_of
from sandboxio.mcp.refusals import ArgumentRefused, FileNotShown
from sandboxio.mcp.results import FileContent, answer, picture

__all__ = ["shown_file"]

# Content tells these apart better than names, which code in the sandbox chooses.
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def shown_file(path: str, data: bytes, start_line: int, note: str) -> CallToolResult:
    """A file's content as an answer.

    Raises:
        ArgumentRefused: There is nothing to show from this line on.
        FileNotShown: It is binary and too large to be shown.

    Example: `shown_file("a.txt", b"text", 1, "")`
    """
    mime_type = _mime_type(path, data)
    try:
        if b"\0" in data:
            raise UnicodeError
        text = data.decode("utf-8")
    except UnicodeError:
        return _shown_binary(path, data, mime_type, note)
    page = page_of(text, first=start_line)
    if start_line > max(1, page.total_lines):
        raise ArgumentRefused(
            f"there is no line {start_line} in {path!r}, whose last line is {page.total_lines}",
            hint=f"give a start_line of at most {max(1, page.total_lines)}",
        )
    return answer(
        FileContent(
            path=path,
            size=len(data),
            encoding="utf-8",
            mime_type=mime_type or "text/plain",
            content=page.text,
            next_line=page.next_line,
            truncated=page.truncated,
            note=note,
        )
    )


def _shown_binary(path: str, data: bytes, mime_type: str, note: str) -> CallToolResult:
    content = FileContent(
        path=path,
        size=len(data),
        encoding="base64",
        mime_type=mime_type or "application/octet-stream",
        content="",
        next_line=None,
        truncated=False,
        note=note,
    )
    if shown := picture(data, mime_type):
        return answer({**content, "encoding": "image"}, shown)
    if len(data) > MAX_INLINE_BYTES:
        raise FileNotShown(
            f"{path!r} is binary ({content['mime_type']}, {len(data)} bytes), and at most "
            f"{MAX_INLINE_BYTES} bytes of such a file are shown",
            hint="look into it with run_python or run_command, or convert it to text or to a smaller "
            "picture first",
        )
    return answer({**content, "content": base64.b64encode(data).decode()})


def _mime_type(path: str, data: bytes) -> str:
    for magic, mime_type in _MAGIC:
        if data.startswith(magic):
            return mime_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    guessed = mimetypes.guess_type(path)[0] or ""
    return "" if guessed.startswith("image/") and guessed != "image/svg+xml" else guessed
