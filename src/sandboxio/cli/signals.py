"""The signals that end a command, and how they are kept from one that could not answer them.

It is loaded before anything else of the tool, so it imports next to nothing itself.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["WORDS", "SignalsHeld", "ending_signals", "hold_signals", "ignore_signals"]

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal has gone"}
"""What a person is told about each."""


def ending_signals() -> list[signal.Signals]:
    """Those of the signals that there are on this system."""
    return [number for number in signal.Signals if number.name in WORDS]


class SignalsHeld:
    """Holds signals back while the tool is being loaded; `run_to_end` answers those that came.

    Until then one would end the tool without the word and the document that tell of it.

    Example: `with SignalsHeld(): ...`
    """

    def __enter__(self) -> None:
        if sys.platform != "win32":
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())

    def __exit__(self, *exc_info: object) -> None:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def hold_signals() -> None:
    """Hold them back, until the `SignalsHeld` around it ends.

    Example: once a signal has been answered, and what is left is to tell of it.
    """
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())


def ignore_signals() -> None:
    """Let the process exit in peace, once a signal has been answered; those that are held are forgotten.

    The interpreter takes a moment to exit, and a further signal would have it end with another code or
    print a traceback.
    """
    for number in ending_signals():
        try:
            signal.signal(number, signal.SIG_IGN)
        except ValueError:  # in another thread than the main one nothing can be ignored
            return
