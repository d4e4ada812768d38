"""Answers that are sent while they come into being, one piece at a time.

Every piece is awaited out before the next is asked for, so a client that does not read makes the
source wait; and a client that leaves closes the source.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .exchange import disconnected

__all__ = ["Streamed", "paced"]

Item = TypeVar("Item")

_THE_END: Any = object()


class Streamed(Response):
    """A body out of an asynchronous generator, which is closed in every case."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        if "content-length" not in (headers or {}):
            del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces until there is none left or nobody listens."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def paced(
    source: AsyncIterator[Item], interval: float | None, deadline: float | None = None
) -> AsyncGenerator[Item | None, None]:
    """The source's items, and `None` each time none came for `interval` seconds.

    Args:
        source: Closed in the end, if it can be.
        interval: In seconds; `None` never gives `None`.
        deadline: On the event loop's clock.

    Raises:
        TimeoutError: The deadline is over.
    """
    loop = asyncio.get_running_loop()
    coming: asyncio.Task[Item] | None = None
    try:
        while True:
            patience = interval
            if deadline is not None:
                left = deadline - loop.time()
                if left <= 0:
                    raise TimeoutError
                patience = left if interval is None else min(interval, left)
            coming = coming or asyncio.create_task(_next(source))
            done, _ = await asyncio.wait({coming}, timeout=patience)
            if not done:
                if interval is not None and patience == interval:
                    yield None
                continue
            item, coming = coming.result(), None
            if item is _THE_END:
                return
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source, _THE_END)
