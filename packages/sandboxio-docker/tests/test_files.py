"""Files in a container: hostile names, large folders, large files, and what a refusal names."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from docker_suite.factory import SandboxFactory
from docker_suite.images import BUSYBOX_IMAGE, PYTHON_IMAGE, ImageBuilder

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import FileSystemError, PathNotFound
from sandboxio.models import Resources

pytestmark = pytest.mark.docker

both_images = pytest.mark.parametrize("image", [PYTHON_IMAGE, BUSYBOX_IMAGE], ids=["coreutils", "busybox"])
HOSTILE = [
    "-rf",
    "--",
    "a b",
    "new\nline",
    "\n",
    "*",
    ".[!.]*",
    "..?*",
    "'\"$(touch pwned)\\",
    "\udcff\udcfe",
]


@both_images
@pytest.mark.parametrize("count", [0, 1, 490, 491, 1234])
async def test_a_listing_is_exact_whatever_its_length_and_names(
    create: SandboxFactory, image: str, count: int
) -> None:
    sandbox = await create(template=image)
    port = sandbox._guard.driver.files
    assert port is not None
    await sandbox.files.mkdir("many")
    hostile = HOSTILE if count else []
    for name in hostile:
        await port.write(f"/work/many/{name}", content(name), len(os.fsencode(name)), 0o600)
    await sandbox.run(f"cd many; for i in $(seq {count}); do echo $i >f$i; done; chmod 640 f*")
    expected = {name: (len(os.fsencode(name)), 0o600) for name in hostile}
    expected |= {f"f{i}": (len(str(i)) + 1, 0o640) for i in range(1, count + 1)}
    listed = await sandbox.files.ls("many")
    assert {info.name: (info.size, info.mode) for info in listed} == expected
    assert len(listed) == len(expected)
    assert all(info.path == f"/work/many/{info.name}" for info in listed)


async def content(name: str) -> AsyncIterator[bytes]:
    yield os.fsencode(name)


async def test_a_listing_tells_folders_files_and_links_apart(sandbox: Sandbox) -> None:
    await sandbox.run("mkdir d; echo >f; ln -s d l; ln -s nowhere x")
    kinds = {info.name: info.is_dir for info in await sandbox.files.ls()}
    assert kinds == {"d": True, "f": False, "l": False, "x": False}


async def test_an_image_without_stat_lists_what_a_shell_can_tell(
    create: SandboxFactory, build: ImageBuilder
) -> None:
    sandbox = await create(template=build("nostat", "USER root", "RUN rm /usr/bin/stat"))
    await sandbox.run("mkdir d; echo >f; ln -s d l; ln -s nowhere x")
    found = {info.name: (info.is_dir, info.size, info.mode) for info in await sandbox.files.ls()}
    assert found == {name: (name == "d", None, None) for name in "dflx"}
    await sandbox.files.write("f", b"new")
    assert await sandbox.files.read("f") == b"new"


async def test_a_large_folder_is_listed_in_about_the_time_that_describing_its_entries_takes(
    sandbox: Sandbox,
) -> None:
    await sandbox.run(f"mkdir many; cd many; seq 12000 | sed 's/$/{'x' * 200}/' | xargs touch")

    async def describe() -> None:
        command = ["find", "many", "-type", "f", "-exec", "stat", "-c", "%f %s %Y %n", "--", "{}", "+"]
        assert len((await sandbox.run(command)).stdout.splitlines()) == 12_000

    async def list_it() -> None:
        assert len(await sandbox.files.ls("many")) == 12_000

    seconds = {call: min([await timed(call) for _ in range(2)]) for call in (describe, list_it)}
    assert seconds[list_it] < 4 * seconds[describe]


async def timed(call: Callable[[], Awaitable[None]]) -> float:
    begin = time.perf_counter()
    await call()
    return time.perf_counter() - begin


REFUSED_TARGETS = {
    "a folder": ("file", "folder", "is a directory"),
    "in a missing folder": ("folder", "nowhere/x", "or its parent does not exist"),
    "below a file": ("folder", "file/x", "not a directory"),
    "a file, for a folder": ("folder", "file", "is not a directory"),
    "on the read-only system": ("file", "/etc/x", "read-only"),
    "too long": ("file", "x" * 256, "too long"),
    "inside the source": ("folder", "folder/x", "failed with code 1"),
}


@both_images
async def test_a_refused_rename_names_the_side_that_is_to_blame(create: SandboxFactory, image: str) -> None:
    sandbox = await create(template=image)
    await sandbox.files.write("file", b"x")
    await sandbox.files.mkdir("folder")
    for case, (source, target, words) in REFUSED_TARGETS.items():
        with pytest.raises(FileSystemError, match=words) as caught:
            await sandbox.files.rename(source, target)
        assert blamed(caught.value) == posixpath.join("/work", target), case
    for source in ("nothing", "/etc/passwd"):
        with pytest.raises(FileSystemError) as caught:
            await sandbox.files.rename(source, "moved")
        assert blamed(caught.value) == posixpath.join("/work", source)
    assert await sandbox.files.read("file") == b"x"


@both_images
async def test_a_file_that_is_renamed_to_itself_stays(create: SandboxFactory, image: str) -> None:
    sandbox = await create(template=image)
    await sandbox.files.mkdir("folder")
    await sandbox.run("echo x >file; ln -s /nowhere dangling; ln -s . here; ln file second; ln -s file link")
    for source, target in (
        ("file", "file"),
        ("file", "./folder/../file"),
        ("file", "here/file"),
        ("dangling", "dangling"),
        ("link", "link"),
        ("folder", "folder"),
    ):
        await sandbox.files.rename(source, target)
    names = [entry.name for entry in await sandbox.files.ls(".")]
    assert names == ["dangling", "file", "folder", "here", "link", "second"]
    assert await sandbox.files.read("file") == await sandbox.files.read("link") == b"x\n"
    await sandbox.files.rename("link", "moved")
    assert (await sandbox.run("readlink moved")).stdout == "file\n"
    with pytest.raises(PathNotFound):
        await sandbox.files.rename("nothing", "nothing")


def blamed(error: FileSystemError) -> str:
    """The path that its message names first."""
    return error.message.split("'")[1]


async def test_a_rename_to_a_place_without_a_parent_is_path_not_found(sandbox: Sandbox) -> None:
    await sandbox.files.mkdir("folder")
    with pytest.raises(PathNotFound, match="'/work/nowhere/x'"):
        await sandbox.files.rename("folder", "nowhere/x")


@both_images
async def test_what_its_owner_may_not_move_is_the_sources_fault(create: SandboxFactory, image: str) -> None:
    sandbox = await create(template=image)
    await sandbox.run(
        "mkdir shut shut/in sub; echo >shut/file; chmod 555 shut/in shut; echo >dumb; chmod 0 dumb"
    )
    for source, target in (("shut/file", "sub/x"), ("shut/in", "sub/in"), ("dumb", "/tmp/dumb")):
        with pytest.raises(FileSystemError, match=f"'/work/{source}' may not be used"):
            await sandbox.files.rename(source, target)


async def test_files_work_in_busybox(create: SandboxFactory) -> None:
    sandbox = await create(template=BUSYBOX_IMAGE)
    names = ["a b", "-rf", "new\nline", "'; touch p; #", ".hidden", "..two", "back\\0777"]
    for name in names:
        await sandbox.files.write(f"/work/{name}", name.encode("utf-8", "surrogateescape"))
    assert sorted(info.name for info in await sandbox.files.ls()) == sorted(names)
    for name in names:
        assert await sandbox.files.read(f"/work/{name}") == name.encode("utf-8", "surrogateescape")
        await sandbox.files.rename(f"/work/{name}", "/work/moved")
        assert (await sandbox.files.stat("/work/moved")).size == len(name.encode("utf-8", "surrogateescape"))
        await sandbox.files.remove("/work/moved")
    await sandbox.files.mkdir("deep/er", parents=True)
    assert (await sandbox.files.stat("deep")).is_dir
    await sandbox.files.remove("deep", recursive=True)
    assert await sandbox.files.ls() == ()


async def test_names_that_are_no_utf_8_come_through(sandbox: Sandbox) -> None:
    port = sandbox._guard.driver.files
    assert port is not None
    path = "/work/\udcff\n\udcfe"

    async def data() -> AsyncIterator[bytes]:
        yield b"content"

    await port.write(path, data(), 7, 0o640)
    (info,) = await port.list("/work")
    assert (info.path, info.size, info.mode) == (path, 7, 0o640)
    assert await port.stat(path) == info
    await port.rename(path, "/work/plain")
    await port.remove("/work/plain", recursive=False)


LARGE = 20 * 2**20


async def test_a_large_file_takes_its_place_whole_or_not_at_all(create: SandboxFactory) -> None:
    sandbox = await create(resources=Resources(memory_mb=256, disk_mb=64))
    await sandbox.files.mkdir("sub")
    await sandbox.files.write("sub/big", b"x" * LARGE)
    assert (await sandbox.files.stat("sub/big")).size == LARGE
    owner = await sandbox.run(["stat", "-c", "%u:%g %a", "sub/big"])
    assert owner.stdout == "65532:65532 644\n"
    with pytest.raises(FileSystemError, match="no space left"):
        await sandbox.files.write("sub/big", b"y" * LARGE * 2)
    with pytest.raises(PathNotFound):
        await sandbox.files.write("nowhere/big", b"y" * LARGE)
    with pytest.raises(FileSystemError, match="is a directory"):
        await sandbox.files.write("sub", b"y" * LARGE)
    assert await sandbox.files.read("sub/big") == b"x" * LARGE
    assert {info.name for info in await sandbox.files.ls()} == {"sub"}


async def test_a_large_file_does_not_leave_through_a_link(create: SandboxFactory) -> None:
    sandbox = await create()
    await sandbox.run("ln -s /etc out; ln -s /etc/passwd file")
    with pytest.raises(FileSystemError, match="read-only"):
        await sandbox.files.write("out/planted", b"y" * LARGE)
    await sandbox.files.write("file", b"y" * LARGE)
    assert (await sandbox.run(["stat", "-c", "%F %s", "file"])).stdout == f"regular file {LARGE}\n"


async def test_a_read_only_place_names_the_writable_ones(sandbox: Sandbox) -> None:
    with pytest.raises(FileSystemError) as caught:
        await sandbox.files.write("/etc/passwd", b"x")
    assert "/work" in caught.value.hint


async def test_a_large_file_lands_whole_wherever_it_goes(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 70_000
    await sandbox.files.mkdir("deep/er", parents=True)
    await sandbox.run("mkdir real; ln -s real alias; ln -s /etc/hostname link")
    for path in ("top.bin", "deep/er/low.bin", "alias/through.bin", "link", "/tmp/scratch.bin"):
        await sandbox.files.write(path, data)
        assert await sandbox.files.read(path) == data
    owners = await sandbox.run("stat -c '%u %a' top.bin deep/er/low.bin real/through.bin link")
    assert set(owners.stdout.splitlines()) == {"65532 644"}
    assert (await sandbox.run("ls -A | grep -c part")).stdout.strip() == "0"


async def test_a_large_file_that_does_not_fit_or_has_no_place_leaves_nothing(sandbox: Sandbox) -> None:
    data = b"x" * 20_000_000
    with pytest.raises(PathNotFound):
        await sandbox.files.write("nowhere/big.bin", data)
    with pytest.raises(FileSystemError, match="no space left"):
        await sandbox.files.write("big.bin", data * 25)
    assert (await sandbox.run("ls -A")).stdout == ""
