"""Asynchronous work that a signal ends in order: what it has made is gone before the tool exits."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import TypeVar

from sandboxio.cli.signals import WORDS, ending_signals, hold_signals

__all__ = ["Interrupted", "run_to_end"]

T = TypeVar("T")


class Interrupted(Exception):
    """The work was ended by a signal, and has cleaned up.

    Attributes:
        signal: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


def run_to_end(work: Callable[[], Awaitable[T]], *, on_signal: Callable[[str], None]) -> T:
    """Run `work` in an event loop of its own. The first signal cancels it, and it still cleans up.

    Further signals are ignored: cleaning up is bounded, and cutting it short is what would leave
    something behind.

    Args:
        work: What to do.
        on_signal: Called once the first signal has cancelled the work, with a word for it.

    Raises:
        Interrupted: A signal came.
    """
    import anyio

    async def supervised() -> T:
        received: list[int] = []
        results: list[T] = []
        scope = anyio.CancelScope()

        def stop(number: int) -> None:
            if not received:
                received.append(number)
                scope.cancel()
                on_signal(WORDS[signal.Signals(number).name])

        with _handling(stop):
            try:
                with scope:
                    results.append(await work())
            except Exception as exc:
                if received:
                    raise Interrupted(received[0]) from exc
                raise
            finally:
                if received:  # the work has ended, and what has to be written about it has not
                    hold_signals()
        if received:
            raise Interrupted(received[0])
        return results[0]

    return anyio.run(supervised)


@contextmanager
def _handling(stop: Callable[[int], None]) -> Generator[None]:
    """Hand signals to `stop`, except those that this process was told to ignore, as by `nohup`.

    The scope that `stop` cancels holds where a cancellation of asyncio's own would not: what is
    shielded from the one is not from the other.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []
    for number in ending_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            continue
        with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or another thread
            loop.add_signal_handler(number, stop, number)
            handled.append(number)
    if sys.platform != "win32":
        for number in signal.sigpending().intersection(handled):  # before any work is begun for nothing
            stop(signal.sigwait([number]))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ending_signals())
    try:
        yield
    finally:
        # The work has ended. What comes while the loop is being closed, which puts the defaults back,
        # changes nothing any more.
        for number in handled:
            loop.add_signal_handler(number, _too_late)


def _too_late() -> None:
    """Answer a signal by nothing."""
