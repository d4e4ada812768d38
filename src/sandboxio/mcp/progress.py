"""A sign of life for calls that take long, sent to clients that ask for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

__all__ = ["PROGRESS_SECONDS", "Stage", "reporting"]

PROGRESS_SECONDS: Final = 5.0
"""Seconds between two signs."""

T = TypeVar("T")

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Stage:
    """What a call is at, in words; the work changes it as it goes.

    Example: `stage.text = "running"`
    """

    __slots__ = ("text", "total")

    def __init__(self, text: str) -> None:
        self.text = text
        self.total: float | None = None


async def reporting(
    report: Report, stage: Stage, work: Callable[[], Awaitable[T]], *, interval: float = PROGRESS_SECONDS
) -> T:
    """Do the work and report the seconds that have passed, again and again, until it is done.

    What the work raises comes out as it is, a cancellation too.

    Args:
        report: Takes the seconds so far, the seconds at most, and words.
        stage: What the work is at.
        work: What is done.
        interval: Seconds between two reports.

    Example: `await reporting(context.report_progress, Stage("running"), work)`
    """
    failure: Exception | None = None
    outcome: list[T] = []

    async with anyio.create_task_group() as group:
        group.start_soon(_tick, report, stage, interval)
        try:
            outcome.append(await work())
        except Exception as exc:  # carried out of the group, which would wrap it
            failure = exc
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return outcome[0]


async def _tick(report: Report, stage: Stage, interval: float) -> None:
    started = anyio.current_time()
    while True:
        await anyio.sleep(interval)
        elapsed = anyio.current_time() - started
        try:
            await report(elapsed, stage.total, f"{stage.text}, {elapsed:.0f} s so far")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client is leaving, which the server's loop sees to
