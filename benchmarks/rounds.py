"""Interleaved rounds and the table that they end in."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Action = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its limit."""

    what: str
    figure: float
    limit: float
    unit: str
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the figure holds its limit."""
        return self.figure <= self.limit

    def __str__(self) -> str:
        verdict = "ok  " if self.ok else "OVER"
        return (
            f"{verdict} {self.what:<34} {self.figure:9.3f} {self.unit:<3} (limit {self.limit:g})  {self.note}"
        )


async def seconds(action: Action) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    await action()
    return time.perf_counter() - started


async def compare(what: str, ours: Action, by_hand: Action, *, rounds: int, limit: float) -> Row:
    """The ratio of medians over interleaved rounds, after one of each to warm up."""
    await ours()
    await by_hand()
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(rounds):
        pair = ((ours, mine), (by_hand, theirs))
        for action, times in pair if number % 2 else reversed(pair):
            times.append(await seconds(action))
    ours_ms, hand_ms = statistics.median(mine) * 1000, statistics.median(theirs) * 1000
    return Row(
        what, ours_ms / hand_ms, limit, "x", f"{ours_ms:.1f} ms against {hand_ms:.1f} ms, {rounds} rounds"
    )
