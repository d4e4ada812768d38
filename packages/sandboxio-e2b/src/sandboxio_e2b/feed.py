"""Between the SDK, which pushes output, and the kit, which asks for it: with backpressure, and cancellable.

The SDK calls back from one task and waits for each callback, so what is not taken here is not read
from the network, and in the end not written by the sandbox.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from sandboxio.adapter.driver import OutputDropped
from sandboxio.models import OutputChunk, RichOutput

__all__ = ["Feed", "Item"]

Item = OutputChunk | RichOutput | OutputDropped

_ITEMS_AHEAD: Final = 16
_ITEMS_KEPT: Final = 4096
_BYTES_KEPT: Final = 16 * 1024 * 1024


class Feed:
    """Output on its way, from one task to one other of the same event loop.

    Example: `await feed.put(chunk)` on one side, `await feed.take()` on the other.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._room = asyncio.Semaphore(_ITEMS_AHEAD)
        self._news = asyncio.Event()
        self._wide = False
        self._ended = False
        self._failure: Exception | None = None

    async def put(self, item: Item) -> None:
        """Add an item. Waits while many are not taken; a widened feed drops the excess, and says so."""
        if not self._wide:
            await self._room.acquire()
        if not self._wide or (len(self._items) < _ITEMS_KEPT and self._bytes < _BYTES_KEPT):
            self._items.append(item)
            self._bytes += _size(item)
        elif not isinstance(self._items[-1], OutputDropped):
            self._items.append(OutputDropped())
        self._news.set()

    def end(self, failure: Exception | None = None) -> None:
        """No more comes, for this reason if any."""
        self._ended = True
        self._failure = failure
        self._news.set()

    def widen(self) -> None:
        """Let what is on its way arrive although nobody takes it, so that an end behind it is seen."""
        self._wide = True
        self._room.release()

    async def take(self) -> Item | None:
        """The next item, or `None` at the end. Cancelling it loses nothing.

        Raises:
            Exception: The failure that it ended with.
        """
        while not self._items:
            if self._ended:
                if self._failure is not None:
                    raise self._failure
                return None
            self._news.clear()
            await self._news.wait()
        self._room.release()
        item = self._items.popleft()
        self._bytes -= _size(item)
        return item


def _size(item: Item) -> int:
    return 0 if isinstance(item, OutputDropped) else len(item.data)
