"""Where the log of the server's process goes: as plain lines to standard error."""

from __future__ import annotations

import logging
import sys

from sandboxio.logs import debugging

__all__ = ["log_to_stderr"]


def log_to_stderr() -> None:
    """Set the process's logging up, before the SDK does.

    The SDK's own handler imports modules when there is a traceback to show. Where descriptors have run out
    that fails, and the failure ends the event loop which wanted to say so. This one imports nothing, and
    what it cannot write it leaves out.

    Example: `log_to_stderr()`
    """
    logging.raiseExceptions = False
    logging.basicConfig(
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
        level=logging.DEBUG if debugging() else logging.WARNING,
    )
