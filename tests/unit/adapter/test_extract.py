"""Archives: what is read from them, and what a hostile one cannot do."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from sandboxio.adapter.extract import extract_tree
from sandboxio.adapter.local import new_folder, pack_tree
from sandboxio.adapter.tar import END, file_header, padding, read_members
from sandboxio.errors import FileSystemError

LIMIT = 10_000_000


def archive(*members: tuple[str, dict[str, object], bytes], fmt: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=fmt) as tar:
        for name, fields, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ROOT = ("tree", {"type": tarfile.DIRTYPE}, b"")


async def pieces(data: bytes, size: int = 700) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def unpack(data: bytes, target, limit: int = LIMIT) -> int:
    async with new_folder(target) as folder, aclosing(pieces(data)) as chunks:
        return await extract_tree(chunks, folder, max_bytes=limit)


@pytest.mark.parametrize("fmt", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("size", [1, 511, 512, 513, 100_000])
async def test_members_come_back_as_they_were_packed(fmt, size):
    long = "tree/" + "d" * 90 + "/" + "ü" * 90
    data = archive(ROOT, (long, {}, b"x" * 1000), ("tree/empty", {}, b""), fmt=fmt)
    found = []
    async with aclosing(pieces(data, size)) as chunks:
        async for member in read_members(chunks):
            content = b"".join([chunk async for chunk in member.data])
            found.append((member.info.name, content))
    assert found == [("tree", b""), (long, b"x" * 1000), ("tree/empty", b"")]


async def test_content_that_nobody_reads_is_skipped():
    data = archive(("a", {}, b"1" * 5000), ("b", {}, b"2"))
    async with aclosing(pieces(data)) as chunks:
        assert [member.info.name async for member in read_members(chunks)] == ["a", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"not a tar archive at all" * 100,
        archive(("a", {}, b"x" * 5000))[:2000],
        archive(("a", {}, b"x" * 5000))[:100],
        file_header("x", 1, 0o644, 0, 0)[:124] + b"-0000000001\0" + file_header("x", 1, 0o644, 0, 0)[136:],
    ],
)
async def test_bytes_that_are_no_archive_are_a_clear_error(data):
    async with aclosing(pieces(data)) as chunks:
        with pytest.raises(FileSystemError, match="not usable"):
            async for member in read_members(chunks):
                async for _ in member.data:
                    pass


async def test_an_endless_name_is_refused_before_it_fills_the_memory():
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    async with aclosing(pieces(info.tobuf(tarfile.GNU_FORMAT))) as chunks:
        with pytest.raises(FileSystemError, match="longer than"):
            async for _ in read_members(chunks):
                pass


async def test_many_extended_headers_before_one_member_are_refused_before_they_fill_the_memory():
    info = tarfile.TarInfo("pax")
    record = b"600000 comment=" + b"x" * (600_000 - 16) + b"\n"
    info.type, info.size = tarfile.XHDTYPE, len(record)
    one = info.tobuf(tarfile.USTAR_FORMAT) + record + padding(len(record))
    async with aclosing(pieces(one * 3)) as chunks:
        with pytest.raises(FileSystemError, match="longer than"):
            async for _ in read_members(chunks):
                pass


async def test_folders_that_no_member_names_are_counted_too(tmp_path, monkeypatch):
    monkeypatch.setattr("sandboxio.adapter.extract._ENTRY_LIMIT", 100)
    members = [(f"tree/{number}/" + "d/" * 50 + "f", {}, b"") for number in range(3)]
    with pytest.raises(FileSystemError, match="more than 100 entries"):
        await unpack(archive(ROOT, *members), tmp_path / "out")


async def test_link_targets_are_bounded_in_all(tmp_path, monkeypatch):
    monkeypatch.setattr("sandboxio.adapter.extract._LINK_BYTES_LIMIT", 10_000)
    members = [
        (f"tree/{number}", {"type": tarfile.SYMTYPE, "linkname": "x" * 4000}, b"") for number in range(3)
    ]
    with pytest.raises(FileSystemError, match="download parts"):
        await unpack(archive(ROOT, *members), tmp_path / "out")


@pytest.mark.parametrize(
    "record",
    [b"99999999999 path=x\n", b"path=x\n", b"5 a\n", b"x 1=2\n", b"11 size=-1\n", b"12 size=1e9\n", b"0 =\n"],
)
async def test_a_malformed_extended_header_is_a_clear_error(record):
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    data = info.tobuf(tarfile.USTAR_FORMAT) + record + padding(len(record)) + archive(("a", {}, b"x"))
    async with aclosing(pieces(data)) as chunks:
        with pytest.raises(FileSystemError, match="not usable"):
            async for _ in read_members(chunks):
                pass


async def test_a_tree_is_unpacked_with_its_modes_and_inner_links(tmp_path):
    data = archive(
        ROOT,
        ("tree/bin", {"type": tarfile.DIRTYPE}, b""),
        ("tree/bin/run", {"mode": 0o4777}, b"#!/bin/sh\n"),
        ("tree/bin/alias", {"type": tarfile.SYMTYPE, "linkname": "../bin/run"}, b""),
        ("tree/hard", {"type": tarfile.LNKTYPE, "linkname": "tree/bin/run"}, b""),
        ("tree/deep/er/file", {}, b"x"),
    )
    written = await unpack(data, tmp_path / "out")
    out = tmp_path / "out"
    assert written == 11
    assert (out / "bin/run").stat().st_mode & 0o7777 == 0o755
    assert (out / "bin/alias").read_bytes() == b"#!/bin/sh\n"
    assert (out / "hard").read_bytes() == b"#!/bin/sh\n"
    assert (out / "deep/er/file").read_bytes() == b"x"


HOSTILE = {
    "a name that climbs": [("tree/../evil", {}, b"x")],
    "a name beside the root": [("other/evil", {}, b"x")],
    "an absolute name": [("/etc/evil", {}, b"x")],
    "a name with an empty part": [("tree//evil", {}, b"x")],
    "a device": [("tree/dev", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, b"")],
    "a pipe": [("tree/pipe", {"type": tarfile.FIFOTYPE}, b"")],
    "an absolute link": [("tree/l", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, b"")],
    "a link that climbs": [("tree/l", {"type": tarfile.SYMTYPE, "linkname": "../evil"}, b"")],
    "a link through a link": [
        ("tree/dot", {"type": tarfile.SYMTYPE, "linkname": "."}, b""),
        ("tree/l", {"type": tarfile.SYMTYPE, "linkname": "dot/../../evil"}, b""),
    ],
    "a file through a link": [
        ("tree/sub", {"type": tarfile.SYMTYPE, "linkname": "."}, b""),
        ("tree/sub", {"type": tarfile.DIRTYPE}, b""),
        ("tree/sub/evil", {}, b"x"),
    ],
    "a file twice": [("tree/f", {}, b"1"), ("tree/f", {}, b"2")],
    "a hard link out": [("tree/h", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}, b"")],
    "a hard link to a link": [
        ("tree/s", {"type": tarfile.SYMTYPE, "linkname": "f"}, b""),
        ("tree/f", {}, b"x"),
        ("tree/h", {"type": tarfile.LNKTYPE, "linkname": "tree/s"}, b""),
    ],
    "a file as a folder": [("tree/f", {}, b"x"), ("tree/f/evil", {}, b"x")],
    "more bytes than allowed": [("tree/f", {}, b"x" * 2000)],
    "a tree that is too deep": [("tree/" + "d/" * 300 + "f", {}, b"x")],
    "a link with an endless target": [("tree/l", {"type": tarfile.SYMTYPE, "linkname": "x" * 5000}, b"")],
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_tree_fails_as_a_whole_and_leaves_nothing(tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    data = archive(ROOT, ("tree/fine", {}, b"fine"), *HOSTILE[name])
    with pytest.raises(FileSystemError) as caught:
        await unpack(data, home / "out", limit=1000)
    assert caught.value.code == "SBX_E1700"
    assert os.listdir(home) == []
    assert os.listdir(tmp_path) == ["home"]


async def test_a_tree_that_is_a_file_is_refused(tmp_path):
    with pytest.raises(FileSystemError):
        await unpack(archive(("tree", {}, b"x")), tmp_path / "out")


async def test_a_target_that_holds_something_is_refused_and_kept(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")
    with pytest.raises(FileSystemError, match="no empty directory"):
        await unpack(archive(ROOT), tmp_path / "out")
    assert (tmp_path / "out/mine").read_text() == "mine"


async def test_what_is_packed_can_be_unpacked(tmp_path):
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/'; touch p; #").write_bytes(b"1" * 3_000_000)
    (source / "-rf").write_bytes(b"2")
    (source / "a/link").symlink_to("b")
    (source / os.fsdecode(b"bytes\xff")).write_bytes(b"3")

    async def rooted() -> AsyncIterator[bytes]:
        yield archive(("", {"type": tarfile.DIRTYPE}, b""))[:512]
        async with aclosing(pack_tree(source, (1, 2))) as chunks:
            async for chunk in chunks:
                yield chunk

    async with new_folder(tmp_path / "out") as folder, aclosing(rooted()) as chunks:
        await extract_tree(chunks, folder, max_bytes=LIMIT)
    out = tmp_path / "out"
    assert (out / "a/b/'; touch p; #").read_bytes() == b"1" * 3_000_000
    assert (out / "-rf").read_bytes() == b"2"
    assert os.readlink(out / "a/link") == "b"
    assert (out / os.fsdecode(b"bytes\xff")).read_bytes() == b"3"


async def test_a_local_pipe_is_refused_and_never_waited_on(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    async with aclosing(pack_tree(tmp_path, (1, 2))) as chunks:
        with pytest.raises(FileSystemError, match="no file, directory or link"):
            async for _ in chunks:
                pass


def test_an_archive_ends_with_two_empty_blocks():
    data = io.BytesIO(file_header("a", 1, 0o644, 1, 1) + b"x" + padding(1) + END)
    with tarfile.open(fileobj=data) as tar:
        assert tar.getnames() == ["a"]
