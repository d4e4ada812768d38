"""Signals that end the server, the same way on every transport."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio

__all__ = ["EndingSignals", "ending_signals"]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """The first of the signals that end the server; `ending_signals()` gives one.

    Example: `await signals.wait()`
    """

    def __init__(self) -> None:
        self._first = 0
        # An event loop that sleeps wakes up for a descriptor, whichever loop it is.
        self._woken_fd, self._waking_fd = os.pipe()

    @property
    def first(self) -> int:
        """Its number, 0 while none has come."""
        return self._first

    async def wait(self) -> None:
        """Wait until one has come."""
        await anyio.wait_readable(self._woken_fd)

    def receive(self, number: int, _: object) -> None:
        """Take one; what Python calls as a signal's handler."""
        if not self._first:
            self._first = number
            os.write(self._waking_fd, b"\0")


@contextmanager
def ending_signals() -> Generator[EndingSignals, None, None]:
    """Take SIGINT, SIGTERM and SIGHUP, for good.

    The first one ends the server. Further ones change nothing, neither during the teardown nor between it
    and the end of the process: ending the sandboxes is bounded and must not be interrupted. That is why the
    event loop's own handlers are not used: they give way to the default, which kills, when their scope is
    left. SIGHUP stays ignored where it is, as below `nohup`.

    Example: `with ending_signals() as signals: ...`
    """
    signals = EndingSignals()
    taken = [
        number
        for number in _ENDING
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in taken:
        signal.signal(number, signals.receive)
    try:
        yield signals
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_IGN)
