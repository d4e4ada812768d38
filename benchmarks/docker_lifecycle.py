"""Create, run and kill on Docker, against docker-py by hand."""

from __future__ import annotations

from anyio import to_thread

import sandboxio
from benchmarks.by_hand import IMAGE, HandMade
from benchmarks.rounds import Row, compare

LIMIT = 1.1


async def _ours() -> None:
    async with sandboxio.create(f"docker://{IMAGE}") as sandbox:
        await sandbox.run(["true"])


def _by_hand() -> None:
    container = HandMade()
    container.run(["true"])
    container.close()


async def measure() -> list[Row]:
    """The whole life of a sandbox, and one command in a living one."""
    rows = [
        await compare(
            "create + run + kill", _ours, lambda: to_thread.run_sync(_by_hand), rounds=9, limit=LIMIT
        )
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
