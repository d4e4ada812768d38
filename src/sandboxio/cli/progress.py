"""A line on the terminal while something takes long, such as pulling an image. It leaves no trace."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from logging import Handler

__all__ = ["waiting"]

_SILENT_SECONDS: Final = 0.5
_REDRAW_SECONDS: Final = 0.5
_ERASE_LINE: Final = "\r\x1b[K"
_PLAIN_WIDTH: Final = 79


@contextmanager
def waiting(doing: str) -> Generator[Callable[[], None]]:
    """Show what is being done and for how long, once it takes more than a moment.

    Nothing is shown where standard error is no terminal. What the library logs meanwhile, such as
    the image that it pulls, replaces the words. It gives a function that ends it early.

    Args:
        doing: What is being done, such as `creating the sandbox`.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    line = _Line(doing)
    try:
        yield line.end
    finally:
        line.end()


class _Line:
    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._handler = _listening(self._say)
        self._thread = threading.Thread(target=self._draw, name="sandboxio-progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop, and clear the line. Does nothing the second time."""
        if self._ended.is_set():
            return
        import logging

        self._ended.set()
        self._thread.join()
        logging.getLogger("sandboxio").removeHandler(self._handler)

    def _say(self, words: str) -> None:
        self._doing = words

    def _draw(self) -> None:
        drawn = False
        pause = _SILENT_SECONDS
        while not self._ended.wait(pause):
            seconds = int(time.monotonic() - self._started)
            text = f"{self._doing} … {seconds} s"[:_PLAIN_WIDTH]
            sys.stderr.write(_ERASE_LINE + text)
            sys.stderr.flush()
            drawn, pause = True, _REDRAW_SECONDS
        if drawn:
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()


def _listening(say: Callable[[str], None]) -> Handler:
    """Have the library's own words handed to `say`; they are the only ones that tell of a pull."""
    import logging

    from sandboxio.cli.output import printable

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(printable(record.getMessage()).replace("\n", " "))

    handler = Listener(logging.INFO)
    logger = logging.getLogger("sandboxio")
    logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return handler
