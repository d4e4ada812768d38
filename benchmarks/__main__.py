"""Runs every benchmark, or those named, and exits with 1 when a figure is over its limit.

Usage: python -m benchmarks [imports] [core] [lifecycle] [transfer] [e2b]
"""

from __future__ import annotations

import importlib
import sys

import anyio

from benchmarks.rounds import Row

MODULES = {
    "imports": "imports",
    "core": "core",
    "lifecycle": "docker_lifecycle",
    "transfer": "docker_transfer",
    "e2b": "e2b_calls",
}


def main(names: list[str]) -> int:
    """Run the named benchmarks."""
    rows: list[Row] = []
    for name in names or list(MODULES):
        module = importlib.import_module(f"benchmarks.{MODULES[name]}")
        found = module.measure() if name == "imports" else anyio.run(module.measure)
        for row in found:
            print(row, flush=True)
        rows += found
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
