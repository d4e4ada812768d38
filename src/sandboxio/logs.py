"""The library's logger, set up when something is first logged and not before.

It has a `NullHandler`, so nothing is ever printed unless the host configures logging. With
`SBX_DEBUG=1` its level is DEBUG.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["debugging", "get_logger"]


def debugging() -> bool:
    """Whether `SBX_DEBUG=1` asks for more words."""
    return os.environ.get("SBX_DEBUG") == "1"


def get_logger(name: str = "sandboxio") -> Logger:
    """A logger below `sandboxio`. The first call imports `logging` and adds the handler.

    Example: `get_logger("sandboxio.audit").info("…")`
    """
    import logging

    root = logging.getLogger("sandboxio")
    if not any(isinstance(handler, logging.NullHandler) for handler in root.handlers):
        root.addHandler(logging.NullHandler())
        if debugging():
            root.setLevel(logging.DEBUG)
    return logging.getLogger(name)
