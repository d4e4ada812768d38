"""A line on the terminal while something takes long, such as pulling an image. It leaves no trace."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from sandboxio.cli.output import printable

if TYPE_CHECKING:
    from logging import Handler

__all__ = ["waiting"]

_SILENT_SECONDS: Final = 0.5
_REDRAW_SECONDS: Final = 0.5
_ERASE_LINE: Final = "\r\x1b[K"
_USUAL_CELLS: Final = 80


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
        self._say(doing)
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
        self._doing = printable(words).replace("\n", " ")

    def _draw(self) -> None:
        drawn = False
        pause = _SILENT_SECONDS
        with suppress(OSError):  # the terminal has gone
            while not self._ended.wait(pause):
                seconds = int(time.monotonic() - self._started)
                _write(_ERASE_LINE + _fitted(f"{self._doing} … {seconds} s"))
                drawn, pause = True, _REDRAW_SECONDS
            if drawn:
                _write(_ERASE_LINE)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _fitted(text: str) -> str:
    """As much of a text as one line of the terminal holds: only that can be erased again."""
    import unicodedata

    encoding = sys.stderr.encoding or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    room = _cells() - 1
    for index, character in enumerate(shown):
        # Those of ambiguous width count as wide, since they are on some terminals.
        room -= 2 if unicodedata.east_asian_width(character) in "WFA" else 1
        if room < 0:
            return shown[:index]
    return shown


def _cells() -> int:
    """How many there are in a line of the terminal; one that does not know says 0."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_CELLS
    return _USUAL_CELLS


def _listening(say: Callable[[str], None]) -> Handler:
    """Have the library's own words handed to `say`; they are the only ones that tell of a pull."""
    import logging

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    handler = Listener(logging.INFO)
    logger = logging.getLogger("sandboxio")
    logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return handler
