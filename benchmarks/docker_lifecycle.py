"""Create, run and kill on Docker, against docker-py by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
from anyio import to_thread

import sandboxio
from benchmarks.by_hand import IMAGE, HandMade
from benchmarks.rounds import Row, compare

LIMIT = 1.1
AT_ONCE = 20
THREADS = 4


async def _ours() -> None:
    async with sandboxio.create(f"docker://{IMAGE}") as sandbox:
        await sandbox.run(["true"])


def _by_hand() -> None:
    container = HandMade()
    container.run(["true"])
    container.close()


async def _many() -> None:
    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(_ours)


def _many_by_hand() -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(_by_hand) for _ in range(AT_ONCE)]:
            done.result()


async def measure() -> list[Row]:
    """The whole life of a sandbox, of many at once, and one command in a living one."""
    rows = [
        await compare(
            "create + run + kill", _ours, lambda: to_thread.run_sync(_by_hand), rounds=9, limit=LIMIT
        ),
        await compare(
            f"the same, {AT_ONCE} at once",
            _many,
            lambda: to_thread.run_sync(_many_by_hand),
            rounds=5,
            limit=LIMIT,
        ),
    ]
    container = HandMade()
    try:
        async with sandboxio.create(f"docker://{IMAGE}") as sandbox:
            rows.append(
                await compare(
                    "run",
                    lambda: sandbox.run(["true"]),
                    lambda: to_thread.run_sync(container.run, ["true"]),
                    rounds=31,
                    limit=LIMIT,
                )
            )
    finally:
        container.close()
    return rows
