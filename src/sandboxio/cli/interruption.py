"""Asynchronous work that a signal ends in order: what it has made is gone before the tool exits."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

__all__ = ["Interrupted", "run_to_end"]

T = TypeVar("T")

_SIGNALS: Final = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal has gone"}


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
        on_signal: Called at the first signal, with a word for it.

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
                on_signal(_SIGNALS[signal.Signals(number).name])
                scope.cancel()

        with _handling(stop):
            try:
                with scope:
                    results.append(await work())
            except Exception as exc:
                if received:
                    raise Interrupted(received[0]) from exc
                raise
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
    handled: list[int] = []
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or another thread
            loop.add_signal_handler(number, stop, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
