"""Links on the way to a file: they lead where they lead for a command, and none leads the adapter astray."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import FileSystemError, PathNotFound

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

LINKS = """
mkdir -p {0}/real/deep {0}/other && cd {0} && printf x >file && printf up >real/up
ln -s real direct; ln -s direct chained; ln -s "$PWD/real" absolute; ln -s real/deep deep; ln -s file to_file
ln -s nowhere dangling; ln -s circle circle; ln -s there back; ln -s back there
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def folder(sandbox: Sandbox, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A folder with links of every kind, all of whose operations have an end."""
    name = f"of {request.node.name}"
    (await sandbox.run(LINKS.format(f"'{name}'"))).raise_for_status()
    with anyio.fail_after(20):
        yield name


@pytest.mark.parametrize("link", ["direct", "chained", "absolute"])
async def test_a_linked_folder_is_written_to_as_the_folder_itself(
    sandbox: Sandbox, folder: str, link: str, tmp_path: Path
) -> None:
    files, way, real = sandbox.files, f"{folder}/{link}", f"{folder}/real"
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/leaf").write_bytes(b"leaf")
    await files.write(f"{way}/written", b"w")
    await files.mkdir(f"{way}/made")
    await files.mkdir(f"{way}/a/b", parents=True)
    await files.mkdir(way, parents=True)
    await files.rename(f"{folder}/file", f"{way}/moved")
    await files.upload(tmp_path / "tree/leaf", f"{way}/uploaded")
    await files.upload(tmp_path / "tree", way)
    names = ["a", "deep", "leaf", "made", "moved", "up", "uploaded", "written"]
    for path in (way, real):
        assert [entry.name for entry in await files.ls(path)] == names
    await files.download(way, tmp_path / "down")
    assert sorted(entry.name for entry in (tmp_path / "down").iterdir()) == names
    assert await files.read(f"{real}/moved") == b"x"


async def test_a_folder_is_not_replaced_through_a_link_to_it(sandbox: Sandbox, folder: str) -> None:
    for call in (
        sandbox.files.write(f"{folder}/direct", b"x"),
        sandbox.files.rename(f"{folder}/file", f"{folder}/direct"),
        sandbox.files.mkdir(f"{folder}/direct"),
    ):
        with pytest.raises(FileSystemError):
            await call
    assert await sandbox.files.read(f"{folder}/direct/up") == b"up"


async def test_a_link_to_a_file_or_to_nothing_is_replaced_and_its_target_kept(
    sandbox: Sandbox, folder: str
) -> None:
    for name in ("to_file", "dangling", "circle"):
        await sandbox.files.write(f"{folder}/{name}", b"new")
        assert await sandbox.files.read(f"{folder}/{name}") == b"new"
    assert await sandbox.files.read(f"{folder}/file") == b"x"
    assert not await sandbox.files.exists(f"{folder}/nowhere")


@pytest.mark.parametrize("link", ["dangling", "circle", "back"])
async def test_what_lies_behind_a_link_that_leads_nowhere_is_a_typed_error(
    sandbox: Sandbox, folder: str, link: str, tmp_path: Path
) -> None:
    files, way = sandbox.files, f"{folder}/{link}"
    for call in (
        files.write(f"{way}/file", b""),
        files.read(f"{way}/file"),
        files.read(way),
        files.ls(way),
        files.mkdir(f"{way}/made"),
        files.mkdir(way, parents=True),
        files.mkdir(f"{way}/made", parents=True),
        files.stat(f"{way}/file"),
        files.stat(f"{way}/."),
        files.stat(f"{way}/.."),
        files.rename(f"{folder}/file", f"{way}/file"),
        files.upload(tmp_path, way),
        files.download(way, tmp_path / "down"),
        sandbox.run("true", cwd=way),
    ):
        with pytest.raises(FileSystemError) as caught:
            await call
        assert caught.value.hint
    assert await files.read(f"{folder}/file") == b"x"
    assert await files.exists(way)


async def test_a_link_is_described_as_itself_alone_and_in_a_listing(sandbox: Sandbox, folder: str) -> None:
    listed = {entry.name: entry for entry in await sandbox.files.ls(folder)}
    for name, target in (("direct", "real"), ("to_file", "file"), ("dangling", "nowhere"), ("circle",) * 2):
        info = await sandbox.files.stat(f"{folder}/{name}")
        assert (info.is_dir, info.size, info.mode) == (False, len(target), 0o777)
        assert info == listed[name]
    behind = await sandbox.files.stat(f"{folder}/direct/.")
    assert (behind.is_dir, stat.S_IMODE(behind.mode or 0)) == (True, 0o755)


async def test_two_dots_behind_a_link_are_the_parent_of_what_it_leads_to(
    sandbox: Sandbox, folder: str
) -> None:
    files, up = sandbox.files, f"{folder}/deep/.."
    assert (await sandbox.run(f"cat '{up}/up'")).stdout == "up"
    assert await files.read(f"{up}/up") == b"up"
    assert [entry.name for entry in await files.ls(up)] == ["deep", "up"]
    await files.write(f"{up}/written", b"")
    await files.mkdir(f"{up}/made")
    await files.rename(f"{up}/up", f"{up}/../moved")
    await files.remove(f"{up}/written")
    assert [entry.name for entry in await files.ls(f"{folder}/real")] == ["deep", "made"]
    assert await files.read(f"{folder}/moved") == b"up"
    with pytest.raises(PathNotFound):
        await files.read(f"{folder}/missing/../file")
    with pytest.raises(FileSystemError):
        await files.read(f"{folder}/file/../file")


async def test_a_command_starts_in_a_linked_folder_and_in_no_linked_file(
    sandbox: Sandbox, folder: str
) -> None:
    assert (await sandbox.run("cat up", cwd=f"{folder}/direct")).stdout == "up"
    with pytest.raises(FileSystemError, match="is not a directory"):
        await sandbox.run("true", cwd=f"{folder}/to_file")
