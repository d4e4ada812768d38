"""The reaper itself: a process that outlives its parent just long enough to clear up after it.

It is run as a script and needs nothing but the standard library until it has something to reap.
Its parent writes one JSON object a line and gets `ok` back for each; the end of the pipe is the
parent's end, however that came about. The orders are

    {"path": […], "label": "name=value"}    first: where modules are, and what the parent's things carry
    {"hold": id, "engine": {…}}             something is about to be created under this creation id
    {"drop": id}                            it is gone
    {"keep": id}                            it is to live on
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import IO, Any

_PATIENCE_SECONDS = 15.0
_PAUSE_SECONDS = 0.5


def main(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Listen until the parent ends, then remove what it held and had not dropped."""
    held: dict[str, dict[str, Any]] = {}
    kept: set[str] = set()
    path: list[str] = []
    label = ""
    for line in orders:
        order = json.loads(line)
        if "path" in order:
            path, label = order["path"], order["label"]
        elif "hold" in order:
            held[order["hold"]] = order["engine"]
        elif "drop" in order:
            held.pop(order["drop"], None)
        else:
            held.pop(order["keep"], None)
            kept.add(order["keep"])
        answers.write(b"ok\n")
        answers.flush()
    if held:
        sys.path[:] = path
        reap(held, kept, label)


def reap(held: dict[str, dict[str, Any]], kept: set[str], label: str) -> None:
    """Remove what is held, for a while: a create request that was under way may yet be carried out."""
    engines = {json.dumps(engine, sort_keys=True): engine for engine in held.values()}
    missing = set(held)
    end = time.monotonic() + _PATIENCE_SECONDS
    while missing and time.monotonic() < end:
        for engine in engines.values():
            with contextlib.suppress(Exception):  # nobody is left to tell; the engine may come back
                missing -= _sweep(engine, kept, label)
        time.sleep(_PAUSE_SECONDS)


def _sweep(engine: dict[str, Any], kept: set[str], label: str) -> set[str]:
    """Remove what one engine has, and return the creation ids of it."""
    import docker

    from sandboxio_docker.address import Address, TLSFiles
    from sandboxio_docker.ownership import is_own_container

    fields = dict(engine)
    tls = fields.pop("tls")
    address = Address(**fields, tls=TLSFiles(**tls) if tls else None)
    client = docker.DockerClient(**address.sdk_arguments(), version="auto", timeout=20)
    gone: set[str] = set()
    try:
        for container in client.containers.list(all=True, filters={"label": label}, ignore_removed=True):
            creation = container.labels.get("sandboxio.creation", "")
            if creation not in kept and is_own_container(container.name or "", container.labels):
                with contextlib.suppress(Exception):  # the others are still to be removed
                    container.remove(force=True, v=True)
                    gone.add(creation)
        client.volumes.prune(filters={"label": label})  # of those that are in use, none
    finally:
        client.close()
    return gone


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
