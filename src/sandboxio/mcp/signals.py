"""Signals that end the server, the same way on every transport."""

from __future__ import annotations

import signal
from collections.abc import Callable

import anyio

__all__ = ["stop_on_signal"]


async def stop_on_signal(stop: Callable[[], None], received: list[int]) -> None:
    """Call `stop` when SIGINT or SIGTERM comes, and keep its number. It runs until it is cancelled.

    Further signals change nothing: ending the sandboxes is bounded and must not be interrupted.

    Example: `group.start_soon(stop_on_signal, group.cancel_scope.cancel, received)`
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            received.append(number)
            stop()
