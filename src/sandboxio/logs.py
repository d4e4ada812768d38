"""The library's logger, set up when something is first logged and not before, and its warnings.

The logger has a `NullHandler`, so nothing is ever printed unless the host configures logging. With
`SBX_DEBUG=1` its level is DEBUG.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["debugging", "get_logger", "warn"]


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


def warn(text: str, category: type[Warning], *, stacklevel: int = 2) -> None:
    """Warn, but never in place of an exception in flight.

    Where the host's filters turn the warning into an error while another exception is handled, the
    text becomes a note on that one and is logged.

    Example: `warn("a sink failed", AuditSinkWarning)`
    """
    in_flight = sys.exception()
    try:
        warnings.warn(text, category, stacklevel=stacklevel + 1)
    except category:
        if in_flight is None:
            raise
        get_logger().error(text)
        in_flight.add_note(text)
