"""A directory is listed whole and within bounds, whatever its entries are called."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import anyio
import pytest
from adapter_suite import create, require_fine
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import CapabilityNotSupported, FileSystemError, PathNotFound
from sandboxio.models import FileInfo
from sandboxio_e2b import files
from sandboxio_e2b.listing import find_command, read_listing

AGAINST_THE_SERVER = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("path", "start"),
    [("/", "/."), ("/a b", "/a b/."), ("/-x", "/-x/.")],
)
def test_the_search_starts_behind_a_link(path: str, start: str) -> None:
    assert find_command(path)[1] == start


def test_every_record_is_an_entry() -> None:
    output = b"d 1777 4096 1700000000.1234567890 tmp\0l 777 3 -1.0000000000 a b\nc \xff\0"
    assert read_listing("/x", output) == (
        FileInfo("/x/tmp", "tmp", is_dir=True, size=4096, mode=0o1777, mtime=1700000000.123456),
        FileInfo("/x/a b\nc \udcff", "a b\nc \udcff", is_dir=False, size=3, mode=0o777, mtime=-1.0),
    )
    assert read_listing("/x", b"") == ()


@pytest.mark.parametrize(
    "output",
    [
        b"d 755 4096 1.0 cut",
        b"d 755 4096 1.0 a/b\0",
        b"d 755 4096 1.0 \0",
        b"d 755 4096 1.0\0",
        b"d 999 4096 1.0 x\0",
        b"d 755 " + b"9" * 5000 + b" 1.0 x\0",
        b"d 755 4096 1e400 x\0",
        b"\0",
        b"hello\n",
    ],
    ids=range(9),
)
def test_anything_else_is_a_typed_error(output: bytes) -> None:
    with pytest.raises(FileSystemError, match="cannot be read"):
        read_listing("/x", output)


class TestAgainstTheServer:
    """With a `find` of a sandbox."""

    pytestmark = AGAINST_THE_SERVER

    @pytest.fixture(scope="class")
    async def sandbox(self, anyio_backend: str, e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
        async with await create() as sandbox:
            yield sandbox

    async def test_each_kind_of_entry_is_there(self, sandbox: Sandbox) -> None:
        await sandbox.run(
            "mkdir -p kinds/.d; cd kinds; printf 12345 >f; chmod 4751 f; ln -s nowhere l; mkfifo p"
        )
        entries = await sandbox.files.ls("kinds")
        assert [(entry.name, entry.is_dir) for entry in entries] == [
            (".d", True),
            ("f", False),
            ("l", False),
            ("p", False),
        ]
        assert (entries[1].size, entries[1].mode) == (5, 0o4751)
        assert entries[3] == await sandbox.files.stat("kinds/p")
        assert all(entry.path.endswith(f"/kinds/{entry.name}") for entry in entries)

    async def test_one_name_that_is_no_utf8_hides_no_other_and_is_refused_with_a_fix(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.run(
            ["python3", "-c", "import os; os.mkdir('odd'); open(b'odd/a\\xffb', 'w'); open('odd/z', 'w')"]
        )
        odd, plain = await sandbox.files.ls("odd")
        assert (odd.name, plain.name) == ("a\udcffb", "z")
        for call in (
            sandbox.files.read(odd.path),
            sandbox.files.stat(odd.path),
            sandbox.files.ls(odd.path),
            sandbox.files.write(odd.path, b""),
            sandbox.files.mkdir(f"{odd.path}/x"),
            sandbox.files.remove(odd.path),
            sandbox.files.rename("odd/z", odd.path),
            sandbox.files.rename(odd.path, "odd/y"),
            sandbox.files.upload(__file__, odd.path),
            sandbox.files.download(odd.path, "/nowhere"),
        ):
            with pytest.raises(FileSystemError, match="UTF-8") as caught:
                await call
            assert "mv" in caught.value.hint
        (await sandbox.run("mv odd/a* odd/ab")).raise_for_status()
        assert [entry.name for entry in await sandbox.files.ls("odd")] == ["ab", "z"]
        await sandbox.files.remove("odd", recursive=True)

    async def test_what_cannot_be_listed_is_a_typed_error(self, sandbox: Sandbox) -> None:
        await sandbox.run("mkdir locked; chmod 000 locked; : >'is a directory'")
        with pytest.raises(PathNotFound):
            await sandbox.files.ls("missing")
        with pytest.raises(FileSystemError, match="is not a directory"):
            await sandbox.files.ls("is a directory")
        with pytest.raises(FileSystemError, match="may not be used"):
            await sandbox.files.ls("locked")

    async def test_ten_thousand_entries_take_a_few_seconds(self, sandbox: Sandbox) -> None:
        await sandbox.run("mkdir many; cd many; seq -f 'entry number %g' 10000 | xargs -d '\\n' touch")
        began = time.monotonic()
        entries = await sandbox.files.ls("many")
        assert len({entry.name for entry in entries}) == 10_000
        assert time.monotonic() - began < 5

    async def test_a_listing_beyond_the_bound_is_refused_and_its_search_ended(
        self, sandbox: Sandbox, e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await sandbox.run("mkdir large; cd large; seq 5000 | xargs touch")
        monkeypatch.setattr(files, "LISTING_LIMIT_BYTES", 10_000)
        with anyio.fail_after(20), pytest.raises(FileSystemError, match="larger than 10000 bytes") as caught:
            await sandbox.files.ls("large")
        assert "run()" in caught.value.hint
        await require_fine(e2b_server, sandbox)

    async def test_a_template_without_find_is_told_so(self, e2b_server: E2BServer) -> None:
        async with await create(env={"PATH": "/nowhere"}) as sandbox:
            with pytest.raises(CapabilityNotSupported, match="no find"):
                await sandbox.files.ls()
