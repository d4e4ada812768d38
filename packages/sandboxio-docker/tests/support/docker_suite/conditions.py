"""Waiting until something is so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(seconds):
        while not await condition():
            await anyio.sleep(0.05)
