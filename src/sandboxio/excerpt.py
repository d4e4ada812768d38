"""The beginning and the end of a text that is too long to be shown whole to a model."""

from __future__ import annotations

__all__ = ["excerpt"]


def excerpt(text: str, limit: int, *, advice: str = "") -> str:
    """The text, or its beginning and end around a line that says how much is missing.

    Args:
        text: Any text.
        limit: How many of its characters are kept.
        advice: What that line says beside the number.

    Example: `excerpt("a" * 100_000, 1000, advice="; print less")`
    """
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    head = limit // 2
    return f"{text[:head]}\n[{left_out} characters left out{advice}]\n{text[head + left_out :]}"
