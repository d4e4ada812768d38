"""What importing costs, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.rounds import Row

ROUNDS = 15


def _seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def measure() -> list[Row]:
    """`import sandboxio`, and the first use of `create`, each over a bare interpreter."""
    codes = {"bare": "pass", "import": "import sandboxio", "create": "import sandboxio; sandboxio.create"}
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            times[name].append(_seconds(code))
    bare = statistics.median(times["bare"]) * 1000
    rows = []
    for name, what, limit in (
        ("import", "import sandboxio", 15.0),
        ("create", "first sandboxio.create", 150.0),
    ):
        cost = statistics.median(times[name]) * 1000 - bare
        rows.append(Row(what, cost, limit, "ms", f"over a bare interpreter's {bare:.1f} ms, {ROUNDS} rounds"))
    return rows
