"""The kit's own cost per operation, on the fake with a scripted response."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

import sandboxio
from benchmarks.rounds import Row
from sandboxio.testing.fake import FakeBackend

BATCHES = 7
CALLS = 500
LIMIT_US = 200.0


async def _median_us(action: Callable[[], Awaitable[object]]) -> float:
    """The median of the quietest batch, since what else runs on a machine can only make calls slower."""
    medians: list[float] = []
    for _ in range(BATCHES):
        times: list[float] = []
        for _ in range(CALLS):
            started = time.perf_counter()
            await action()
            times.append(time.perf_counter() - started)
        medians.append(statistics.median(times))
    return min(medians) * 1e6


async def measure() -> list[Row]:
    """Every kind of operation, each the median of many calls."""
    fake = FakeBackend()
    fake.on_run_code("1", returns="")
    async with sandboxio.create(fake) as sandbox:
        await sandbox.files.write("note", b"x")

        async def stream() -> None:
            async with sandbox.stream(["true"]) as process:
                await process.wait()

        actions: dict[str, Callable[[], Awaitable[object]]] = {
            "core, run on the fake": lambda: sandbox.run(["true"]),
            "core, run with input on the fake": lambda: sandbox.run(["true"], stdin=b"x"),
            "core, stream on the fake": stream,
            "core, run_code on the fake": lambda: sandbox.run_code("1"),
            "core, files.write on the fake": lambda: sandbox.files.write("note", b"x"),
            "core, files.read on the fake": lambda: sandbox.files.read("note"),
        }
        return [
            Row(what, await _median_us(action), LIMIT_US, "us", f"median of {CALLS} calls, best of {BATCHES}")
            for what, action in actions.items()
        ]
