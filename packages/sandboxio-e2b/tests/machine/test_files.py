"""Files in a machine behave as envd's do."""

from __future__ import annotations

import hashlib
import os
import time
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from e2b_server.ports import Machine
from machine_suite import (
    MIB,
    content,
    output,
    pieces,
    refused,
)

pytestmark = pytest.mark.docker


async def test_a_file_is_written_in_place_with_its_parents(machine: Machine) -> None:
    entry = await machine.files.write("deep/er/file.bin", pieces(b"\0\xff" * 100_000))
    assert (entry.path, entry.size, entry.type) == (
        f"{machine.home}/deep/er/file.bin",
        200_000,
        "FILE_TYPE_FILE",
    )
    await output(machine, "ln deep/er/file.bin deep/other; chmod 750 deep/er/file.bin")
    entry = await machine.files.write("deep/er/file.bin", pieces(b"short"))
    assert (entry.mode, entry.permissions, entry.owner) == (0o750, "-rwxr-x---", "user")
    assert await content(machine, "deep/other") == b"short"
    assert await machine.files.size("deep/other") == 5


async def test_stat_tells_of_links_what_their_targets_are(machine: Machine) -> None:
    await output(
        machine,
        "mkdir -p st/dir; echo x > st/file; ln -s file st/link; ln -s nowhere st/broken; mkfifo st/fifo",
    )
    found = {entry.name: entry for entry in await machine.files.list("st", 1)}
    assert list(found) == ["broken", "dir", "fifo", "file", "link"]
    assert found["link"].type == "FILE_TYPE_FILE"
    assert found["link"].symlink_target == f"{machine.home}/st/file"
    assert found["link"].permissions.startswith("L")
    assert found["broken"].type == "FILE_TYPE_UNSPECIFIED"
    assert found["fifo"].type == "FILE_TYPE_UNSPECIFIED"
    assert found["dir"].permissions.startswith("d")
    assert abs((await machine.files.stat("st/file")).modified_at - time.time()) < 60


async def test_a_listing_goes_as_deep_as_asked(machine: Machine) -> None:
    await output(machine, "mkdir -p ls/a/b/c; for i in $(seq 500); do : > ls/a/b/$i; done")
    names = [entry.path.removeprefix(f"{machine.home}/ls/") for entry in await machine.files.list("ls", 2)]
    assert names == ["a", "a/b"]
    assert len(await machine.files.list("ls", 3)) == 503


async def test_each_refusal_has_its_word(machine: Machine) -> None:
    files = machine.files
    await output(machine, "mkdir -p no/dir; mkfifo no/fifo; echo x > no/file")
    await refused("not_found", files.stat("no/thing"))
    await refused("not_found", files.list("no/thing", 1))
    await refused("not_found", content(machine, "no/thing"))
    await refused("not_found", files.size("no/thing"))
    await refused("not_found", files.move("no/thing", "no/other"))
    await refused("not_found", files.move("no/file", "no/parent/file"))
    await refused("invalid_argument", files.list("no/file", 1))
    await refused("already_exists", files.make_dir("no/dir"))
    await refused("invalid_argument", files.make_dir("no/file"))
    for path in ("no/dir", "no/fifo"):
        await refused("invalid_argument", content(machine, path))
        await refused("invalid_argument", files.write(path, pieces(b"x")))
    await refused("permission_denied", files.write("/root/x", pieces(b"x")))


async def test_directories_are_made_moved_and_removed(machine: Machine) -> None:
    files = machine.files
    assert (await files.make_dir("mv/a/b")).type == "FILE_TYPE_DIRECTORY"
    await files.write("mv/a/b/file", pieces(b"x"))
    assert (await files.move("mv/a", "mv/z")).name == "z"
    await output(machine, "ln -s z mv/link")
    await files.remove("mv/link")
    assert await content(machine, "mv/z/b/file") == b"x"
    await files.remove("mv")
    await files.remove("mv")
    await refused("not_found", files.stat("mv"))


async def test_a_big_file_passes_through_flat_memory(machine: Machine) -> None:
    block = os.urandom(MIB)

    async def data() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield block

    tracemalloc.start()
    try:
        assert (await machine.files.write("big", data())).size == 64 * MIB
        received = hashlib.sha256()
        async for piece in machine.files.read("big"):
            received.update(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert received.digest() == hashlib.sha256(block * 64).digest()
    assert peak < 8 * MIB
    agent = await output(machine, "grep VmHWM /proc/$PPID/status; rm big")
    assert int(agent.split()[1]) < 64 * 1024, "the agent's peak in KiB"


async def test_a_full_disk_is_resource_exhausted(machine: Machine) -> None:
    await output(machine, "fallocate -l $(($(stat -f -c '%a * %S' .) - 1048576)) filler")
    try:
        await refused("resource_exhausted", machine.files.write("more", pieces(bytes(4 * MIB))))
    finally:
        await output(machine, "rm -f filler more")
