"""Deadlines of streams that nobody reads at the moment: the one service thread of a process.

While a stream is read, waited for or written to, that call keeps its deadline. A consumer that
turns away makes no call, and nothing is started in its event loop; so a thread with a loop of its
own ends the tree on time. It runs no user code, starts with the first stream, ends a moment after
the last one, and does not exist in a forked child.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Final

__all__ = ["Watch", "watch"]

LINGER_SECONDS: Final = 2.0


class Watch:
    """A deadline that is being kept; `cancel` it when the stream has ended."""

    def __init__(self, service: _Service, future: Future[None]) -> None:
        self._service = service
        self._future = future

    def cancel(self) -> None:
        """Stop keeping it. Once, and from any thread."""
        self._future.cancel()
        self._service.release()


def watch(seconds: float, end: Callable[[], Awaitable[object]]) -> Watch:
    """Call `end` in the service thread when `seconds` have passed.

    Args:
        seconds: From now.
        end: Must be safe to call from an event loop that is not the caller's.
    """
    return _service.watch(seconds, end)


class _Service:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._watched = 0

    def watch(self, seconds: float, end: Callable[[], Awaitable[object]]) -> Watch:
        with self._lock:
            loop = self._loop or self._start()
            self._watched += 1
            # An empty context: the caller's says which event loop library *its* thread runs.
            submit = contextvars.Context().run
            return Watch(self, submit(asyncio.run_coroutine_threadsafe, _after(seconds, end), loop))

    def release(self) -> None:
        with self._lock:
            self._watched -= 1
            if not self._watched and self._loop is not None:
                self._loop.call_soon_threadsafe(self._wait_for_more)

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._serve, args=(loop,), name="sandboxio", daemon=True)
        thread.start()
        return loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    def _wait_for_more(self) -> None:
        assert self._loop is not None
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(LINGER_SECONDS, self._end_if_idle)

    def _end_if_idle(self) -> None:
        with self._lock:
            if self._watched or self._loop is None:
                return
            self._loop.stop()
            self._loop = None


async def _after(seconds: float, end: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(seconds)
    await end()


def _forget_after_fork() -> None:
    global _service
    _service = _Service()


_service = _Service()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
