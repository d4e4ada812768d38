"""Fail when a test run left something of ours behind: containers, volumes, networks, processes.

Everything that sandboxio makes on an engine carries one label, so what is left is found by it. A removal that
is under way gets a moment to finish.

    python scripts/check_leaks.py [--label KEY=VALUE] [--wait SECONDS] [--processes]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LABEL = "sandboxio.managed=true"
OUR_PROCESSES = "sandboxio_docker"
COMMAND_TIMEOUT = 30

LISTINGS = {
    "container": ("docker", "ps", "--all", "--quiet", "--no-trunc"),
    "volume": ("docker", "volume", "ls", "--quiet"),
    "network": ("docker", "network", "ls", "--quiet", "--no-trunc"),
}


class EngineUnavailableError(Exception):
    """The engine did not list what it has."""


def engine_leaks(label: str) -> Iterator[str]:
    """Yield what the engine still has under a label."""
    for kind, command in LISTINGS.items():
        listing = subprocess.run(
            [*command, "--filter", f"label={label}"],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
        if listing.returncode != 0:
            raise EngineUnavailableError(listing.stderr.strip())
        yield from (f"{kind} {name}" for name in listing.stdout.split())


def process_leaks(proc: Path = Path("/proc")) -> Iterator[str]:
    """Yield the processes of the Docker adapter that outlived the process which started them."""
    for entry in proc.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(OUR_PROCESSES in os.fsdecode(word) for word in words):
            yield f"process {entry.name}: {os.fsdecode(b' '.join(words))[:120].strip()}"


def leaks(label: str, *, processes: bool) -> list[str]:
    """Return everything that is left."""
    found = list(engine_leaks(label))
    if processes:
        found.extend(process_leaks())
    return found


def main(arguments: list[str]) -> int:
    """Print what is left after a bounded wait and return the exit code."""
    parser = argparse.ArgumentParser(description="Fail when sandboxio left something behind.")
    parser.add_argument("--label", default=LABEL, metavar="KEY=VALUE")
    parser.add_argument("--wait", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument(
        "--processes", action="store_true", help="look for processes of the Docker adapter too"
    )
    options = parser.parse_args(arguments)

    deadline = time.monotonic() + options.wait
    try:
        while (found := leaks(options.label, processes=options.processes)) and time.monotonic() < deadline:
            time.sleep(0.25)
    except (EngineUnavailableError, FileNotFoundError, subprocess.TimeoutExpired) as error:
        print(f"cannot look for leaks: {error}")
        return 2
    for leak in found:
        print(f"leaked {leak}")
    print(f"{len(found)} leaks under {options.label}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
