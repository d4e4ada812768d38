"""The kit's own cost per operation, on the fake with a scripted response."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

import sandboxio
from benchmarks.rounds import Row
from sandboxio.testing.fake import FakeBackend

CALLS = 2000
LIMIT_US = 200.0


async def _median_us(action: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await action()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


async def measure() -> list[Row]:
    """`run`, `files.write` and `files.read`, each the median of many calls."""
    async with sandboxio.create(FakeBackend()) as sandbox:
        await sandbox.files.write("note", b"x")
        actions: dict[str, Callable[[], Awaitable[object]]] = {
            "core, run on the fake": lambda: sandbox.run(["true"]),
            "core, files.write on the fake": lambda: sandbox.files.write("note", b"x"),
            "core, files.read on the fake": lambda: sandbox.files.read("note"),
        }
        return [
            Row(what, await _median_us(action), LIMIT_US, "us", f"median of {CALLS} calls")
            for what, action in actions.items()
        ]
