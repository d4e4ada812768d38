"""Blocking calls in threads of the caller's own kind, never in anyio's shared default pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from typing_extensions import TypeVarTuple, Unpack

__all__ = ["BlockingCalls"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class BlockingCalls:
    """A bound on threads for one purpose, kept per event loop.

    Args:
        purpose: A name for the limiter.
        threads: How many calls may run at once in one event loop.

    Example: `await BlockingCalls("local files", 8).run(os.stat, path)`
    """

    def __init__(self, purpose: str, threads: int) -> None:
        self._threads = threads
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"sandboxio {purpose}")

    async def run(self, func: Callable[[Unpack[Ts]], T], *args: *Ts, abandon: bool = False) -> T:
        """Call `func` in a thread.

        Args:
            func: What blocks.
            args: Its arguments.
            abandon: When cancelled, do not wait for the thread to end.
        """
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self._threads)
            self._limiter.set(limiter)
        return await run_sync(func, *args, limiter=limiter, abandon_on_cancel=abandon)
