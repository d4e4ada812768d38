"""How a file is shown to a model: text in pages, pictures as pictures, the rest as base64 or not at all."""

from __future__ import annotations

import base64
import mimetypes
from typing import Final

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult

from sandboxio.mcp.bounds import MAX_FILE_BYTES, MAX_INLINE_BYTES, page_of
from sandboxio.mcp.results import FileContent, answer, picture

__all__ = ["require_readable_size", "shown_file"]

# Content tells these apart better than names, which code in the sandbox chooses.
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def require_readable_size(path: str, size: int | None) -> None:
    """Refuse a file that is too large to be read for an answer.

    Raises:
        ToolError: It is, and the message says what to do instead.

    Example: `require_readable_size("log.txt", 2**40)`
    """
    if size is not None and size > MAX_FILE_BYTES:
        raise ToolError(
            f"{path} has {size} bytes, and read_file reads at most {MAX_FILE_BYTES}.\n"
            "Fix: use run_command or run_python to find, cut or summarize the part you need."
        )


def shown_file(path: str, data: bytes, start_line: int, note: str) -> CallToolResult:
    """A file's content as an answer.

    Raises:
        ToolError: There is nothing to show from this line on, or it is binary and too large to be shown.

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
        raise ToolError(f"{path} has {page.total_lines} lines, so there is no line {start_line}.")
    return answer(
        FileContent(
            path=path,
            size=len(data),
            encoding="utf-8",
            mime_type=mime_type or "text/plain",
            content=page.text,
            next_line=page.next_line,
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
        note=note,
    )
    if shown := picture(data, mime_type):
        return answer({**content, "encoding": "image"}, shown)
    if len(data) > MAX_INLINE_BYTES:
        raise ToolError(
            f"{path} is binary ({content['mime_type']}, {len(data)} bytes), and at most "
            f"{MAX_INLINE_BYTES} bytes of such a file are shown.\nFix: look into it with run_python or "
            "run_command, or convert it to text or to a smaller picture first."
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
