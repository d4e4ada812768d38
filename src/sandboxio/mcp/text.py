"""Text that can be sent. The protocol is UTF-8, and the name of a file in a sandbox need not be."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["sendable"]

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def sendable(text: str) -> str:
    r"""The text, with a replacement character for all that UTF-8 cannot write.

    Example: `sendable(os.fsdecode(b"a\xff"))` is `"a\N{REPLACEMENT CHARACTER}"`.
    """
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
