"""Cancelling an operation at its n-th await, whichever event loop runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

import anyio

__all__ = ["CancelledAt", "cancel_at"]

ResultT = TypeVar("ResultT")


class CancelledAt(Generic[ResultT]):
    """An awaitable around another one that counts its awaits, and cancels a scope at one of them.

    Attributes:
        count: How often it was suspended so far.
    """

    def __init__(self, awaitable: Awaitable[ResultT], scope: anyio.CancelScope, point: int) -> None:
        self._awaitable = awaitable
        self._scope = scope
        self._point = point
        self.count = 0

    def __await__(self) -> Generator[Any, Any, ResultT]:
        inner = self._awaitable.__await__()
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            try:
                trap = inner.send(sent) if thrown is None else inner.throw(thrown)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            self.count += 1
            if self.count == self._point:
                self._scope.cancel()
            sent = thrown = None
            try:
                sent = yield trap
            except BaseException as exc:
                thrown = exc


async def cancel_at(point: int, awaitable: Awaitable[ResultT]) -> tuple[ResultT | None, int]:
    """Await something, cancelling it at its await number `point`, counted from 1; 0 never cancels.

    Returns:
        Its result, or `None` if the cancellation got through, and how many awaits there were.
    """
    result: ResultT | None = None
    scope = anyio.CancelScope()
    counted = CancelledAt(awaitable, scope, point)
    with scope:
        result = await counted
    return result, counted.count
