"""Large output and large files on Docker, against docker-py by hand, and the memory they take."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

import sandboxio
from benchmarks.by_hand import IMAGE, MIB, HandMade
from benchmarks.rounds import Row, compare

LIMIT = 1.1
COPY_LIMIT = 1.6  # a copy in is made beside the old file, and one out is read with the sandbox's own rights
MEMORY_LIMIT_MIB = 64.0
STREAM_BYTES = 200_000_000
FILE_MIB = 1024
DISK_MIB = 2 * FILE_MIB + 256  # a file is replaced by a complete new one, so both exist for a moment
SPAM = ["head", "-c", str(STREAM_BYTES), "/dev/zero"]


async def measure() -> list[Row]:
    """The stream, both directions of a file, and the peaks of memory."""
    resources = sandboxio.Resources(memory_mb=1024, disk_mb=DISK_MIB)
    container = HandMade(disk_mb=DISK_MIB, extra_memory_mb=DISK_MIB)
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "source"), Path(folder, "target")
            await to_thread.run_sync(_fill, source)
            async with sandboxio.create(f"docker://{IMAGE}", resources=resources, timeout=3000) as sandbox:
                rows = await _compare(sandbox, container, source, target)
            return rows + await to_thread.run_sync(_peaks, source, target)
    finally:
        container.close()


def _fill(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(FILE_MIB):
            file.write(b"0123456789abcdef" * (MIB // 16))


async def _compare(
    sandbox: sandboxio.AsyncSandbox, container: HandMade, source: Path, target: Path
) -> list[Row]:
    async def stream() -> None:
        total = 0
        async with sandbox.stream(SPAM) as process:
            async for chunk in process:
                total += len(chunk.data)
        assert total == STREAM_BYTES

    def stream_by_hand() -> None:
        assert container.stream(SPAM) == STREAM_BYTES

    data = await to_thread.run_sync(source.read_bytes)

    async def read() -> None:
        assert len(await sandbox.files.read("big")) == len(data)

    def read_by_hand() -> None:
        assert len(container.read("big")) == len(data)

    def upload_by_hand() -> None:
        container.upload(source, "big")

    def download_by_hand() -> None:
        container.download("big", target)

    pairs = {
        "stream 200 MB": (stream, stream_by_hand),
        "upload 1 GiB": (lambda: sandbox.files.upload(source, "big"), upload_by_hand),
        "download 1 GiB": (lambda: sandbox.files.download("big", target), download_by_hand),
        "write 1 GiB": (lambda: sandbox.files.write("big", data), lambda: container.write("big", data)),
        "read 1 GiB": (read, read_by_hand),
    }
    return [
        await compare(what, ours, partial(to_thread.run_sync, hand), rounds=5, limit=_limit(what))
        for what, (ours, hand) in pairs.items()
    ]


def _limit(what: str) -> float:
    return COPY_LIMIT if what.startswith(("upload", "download")) else LIMIT


def _peaks(source: Path, target: Path) -> list[Row]:
    """Each transfer in a process of its own, whose peak is read before and after."""
    rows = []
    for what in ("upload", "download"):
        command = [sys.executable, "-m", __spec__.name, what, str(source), str(target)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(Row(f"{what} 1 GiB, memory added", float(printed), MEMORY_LIMIT_MIB, "MiB"))
    return rows


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _one_transfer(*arguments: str) -> None:
    what, source, target = arguments
    resources = sandboxio.Resources(memory_mb=1024, disk_mb=DISK_MIB)
    async with sandboxio.create(f"docker://{IMAGE}", resources=resources) as sandbox:
        await sandbox.run(["true"])
        if what == "download":
            await sandbox.run(f"head -c {FILE_MIB * MIB} /dev/zero > big", timeout=120)
        else:
            await sandbox.files.write("small", b"x")
        before = _peak_mib()
        if what == "download":
            await sandbox.files.download("big", target)
        else:
            await sandbox.files.upload(source, "big")
        print(_peak_mib() - before)


if __name__ == "__main__":
    anyio.run(_one_transfer, *sys.argv[1:])
