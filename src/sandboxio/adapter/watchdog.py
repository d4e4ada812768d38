"""Deadlines of streams that nobody reads at the moment: the one service thread of a process.

While a stream is read, waited for or written to, that call keeps its deadline. A consumer that
turns away makes no call, and nothing is started in its event loop; so a thread ends the tree on
time, with an event loop of its own for just that. It runs no user code, starts with the first
stream, ends a moment after the last one, and does not exist in a forked child.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

__all__ = ["Watch", "watch"]

LINGER_SECONDS: Final = 2.0
SPARE_ENTRIES: Final = 64
"""How many ended streams may stay in the heap beside as many as are live."""

End = Callable[[], Awaitable[object]]


@dataclass(order=True, slots=True)
class Watch:
    """A deadline that is being kept; `cancel` it when the stream has ended."""

    deadline: float
    number: int
    _end: End | None = field(compare=False, repr=False)
    _service: _Service = field(compare=False, repr=False)

    def cancel(self) -> None:
        """Stop keeping it. Idempotent, and from any thread."""
        if self.take() is not None:
            self._service.forget()

    @property
    def kept(self) -> bool:
        """Whether nobody has cancelled it or called its end."""
        return self._end is not None

    def take(self) -> End | None:
        """What to call, for the first who asks."""
        end, self._end = self._end, None
        return end


def watch(seconds: float, end: End) -> Watch:
    """Call `end` from the service thread when `seconds` have passed.

    Args:
        seconds: From now.
        end: Must be safe to call from an event loop that is not the caller's.

    Raises:
        RuntimeError: The process can start no more threads.
    """
    return _service.watch(seconds, end)


class _Service:
    """A heap of deadlines, and the thread that waits for the next of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[Watch] = []
        self._live = 0
        self._idle_since = 0.0
        self._wakes_at = 0.0
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def watch(self, seconds: float, end: End) -> Watch:
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="sandboxio", daemon=True)
                thread.start()
                self._thread = thread
            made = Watch(time.monotonic() + seconds, next(self._numbers), end, self)
            heapq.heappush(self._heap, made)
            self._live += 1
            if made.deadline < self._wakes_at:
                self._changed.notify()
            return made

    def forget(self) -> None:
        with self._changed:
            self._live -= 1
            if not self._live:
                self._heap.clear()
                self._idle_since = time.monotonic()
            elif len(self._heap) > 2 * self._live + SPARE_ENTRIES:
                self._heap = [watch for watch in self._heap if watch.kept]
                heapq.heapify(self._heap)

    def _serve(self) -> None:
        while (due := self._wait()) is not None:
            asyncio.run(_end_all(due))

    def _wait(self) -> Sequence[End] | None:
        """What is due, or `None` when nothing has been watched for a moment."""
        with self._changed:
            while True:
                now = time.monotonic()
                due: list[End] = []
                while self._heap and self._heap[0].deadline <= now:
                    end = heapq.heappop(self._heap).take()
                    if end is not None:
                        due.append(end)
                        self._live -= 1
                        self._idle_since = now
                if due:
                    return due
                if not self._live and now - self._idle_since >= LINGER_SECONDS:
                    self._thread = None
                    return None
                # It wakes now and then by itself, so that a stream which comes or goes need not wake it.
                next_deadline = self._heap[0].deadline if self._heap else math.inf
                self._wakes_at = min(next_deadline, now + LINGER_SECONDS)
                self._changed.wait(self._wakes_at - now)


async def _end_all(ends: Sequence[End]) -> None:
    await asyncio.gather(*(end() for end in ends), return_exceptions=True)


def _forget_after_fork() -> None:
    global _service
    _service = _Service()


_service = _Service()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
