"""Uploads and downloads: files and trees, exact, and never outside of where they were told to go."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from sandboxio.errors import ConfigurationError, FileSystemError, PathNotFound
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, names_in, needs

__all__ = ["TransferTests"]

_TRANSFERS = Capability.FILESYSTEM | Capability.UPLOAD_DOWNLOAD
_EXECUTABLE = 0o111


class TransferTests(SuiteBase):
    """Rows on `upload` and `download`."""

    @needs(_TRANSFERS)
    async def test_a_file_is_uploaded_as_it_is(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        data = bytes(range(256)) * 5000
        (tmp_path / "local").write_bytes(data)
        await sandbox.files.upload(tmp_path / "local", f"{folder}/remote")
        assert await sandbox.files.read(f"{folder}/remote") == data

    @needs(_TRANSFERS)
    async def test_a_local_path_may_be_text(self, sandbox: AsyncSandbox, folder: str, tmp_path: Path) -> None:
        (tmp_path / "local").write_bytes(b"text")
        await sandbox.files.upload(str(tmp_path / "local"), f"{folder}/remote")
        await sandbox.files.download(f"{folder}/remote", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == b"text"

    @needs(_TRANSFERS)
    async def test_a_file_is_downloaded_as_it_is(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        data = bytes(range(256)) * 5000
        await sandbox.files.write(f"{folder}/remote", data)
        await sandbox.files.download(f"{folder}/remote", tmp_path / "local")
        assert (tmp_path / "local").read_bytes() == data

    @needs(_TRANSFERS)
    async def test_a_tree_comes_back_as_it_went(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        _plant(tmp_path / "tree")
        await sandbox.files.upload(tmp_path / "tree", f"{folder}/tree")
        await sandbox.files.download(f"{folder}/tree", tmp_path / "back")
        assert _census(tmp_path / "back") == _census(tmp_path / "tree")

    @needs(_TRANSFERS)
    async def test_an_uploaded_tree_is_named_as_it_was_told(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        _plant(tmp_path / "tree")
        await sandbox.files.upload(tmp_path / "tree", f"{folder}/other")
        assert [entry.name for entry in await sandbox.files.ls(folder)] == ["other"]
        assert await sandbox.files.read(f"{folder}/other/sub/deep/file") == b"deep"

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_an_uploaded_executable_can_be_executed(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        await sandbox.files.upload(program, f"{folder}/program")
        assert (await sandbox.run(self.cmd_mode(f"{folder}/program"))).exit_code == 0

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_a_downloaded_executable_is_executable(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        await sandbox.run(self.cmd_make_script(f"{folder}/program"))
        await sandbox.files.download(f"{folder}/program", tmp_path / "program")
        assert (tmp_path / "program").stat().st_mode & _EXECUTABLE

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_a_command_can_write_into_an_uploaded_tree(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        _plant(tmp_path / "tree")
        await sandbox.files.upload(tmp_path / "tree", f"{folder}/tree")
        written = await sandbox.run("echo more > sub/new && echo again >> plain", cwd=f"{folder}/tree")
        assert written.exit_code == 0, written.stderr

    @needs(_TRANSFERS)
    async def test_uploading_what_is_missing_is_path_not_found(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        with pytest.raises(PathNotFound):
            await sandbox.files.upload(tmp_path / "missing", f"{folder}/remote")

    @needs(_TRANSFERS)
    async def test_downloading_what_is_missing_is_path_not_found_and_makes_nothing(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        with pytest.raises(PathNotFound):
            await sandbox.files.download(f"{folder}/missing", tmp_path / "local")
        assert names_in(tmp_path) == []

    @needs(_TRANSFERS)
    async def test_a_download_does_not_mix_into_an_existing_folder(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        (tmp_path / "local").mkdir()
        (tmp_path / "local" / "mine").write_text("kept")
        await sandbox.files.write(f"{folder}/file", b"x")
        with pytest.raises(FileSystemError):
            await sandbox.files.download(folder, tmp_path / "local")
        assert names_in(tmp_path / "local") == ["mine"]

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_a_link_is_downloaded_as_what_it_leads_to(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        await sandbox.files.mkdir(f"{folder}/real")
        await sandbox.files.write(f"{folder}/real/file", b"content")
        await sandbox.run(self.cmd_symlink("real", f"{folder}/link"))
        await sandbox.run(self.cmd_symlink("link/file", f"{folder}/short"))
        await sandbox.files.download(f"{folder}/link", tmp_path / "tree")
        await sandbox.files.download(f"{folder}/short", tmp_path / "file")
        assert (tmp_path / "tree" / "file").read_bytes() == b"content"
        assert (tmp_path / "file").read_bytes() == b"content"
        assert names_in(tmp_path) == ["file", "tree"]

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_a_tree_is_uploaded_into_a_linked_folder(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        _plant(tmp_path / "tree")
        await sandbox.files.mkdir(f"{folder}/real")
        await sandbox.run(self.cmd_symlink("real", f"{folder}/link"))
        await sandbox.files.upload(tmp_path / "tree", f"{folder}/link")
        await sandbox.files.upload(tmp_path / "tree", f"{folder}/link/below")
        await sandbox.files.download(f"{folder}/real/below", tmp_path / "below")
        assert _census(tmp_path / "below") == _census(tmp_path / "tree")

    @needs(_TRANSFERS)
    @pytest.mark.parametrize("local", [".", "/", ".."])
    async def test_a_download_needs_a_name_to_become(
        self, sandbox: AsyncSandbox, folder: str, local: str
    ) -> None:
        await sandbox.files.write(f"{folder}/file", b"x")
        for source in (folder, f"{folder}/file"):
            with pytest.raises(ConfigurationError):
                await sandbox.files.download(source, local)

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_a_link_that_stays_within_the_tree_is_downloaded(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        await sandbox.files.write(f"{folder}/target", b"content")
        await sandbox.run(self.cmd_symlink("target", f"{folder}/link"))
        await sandbox.files.download(folder, tmp_path / "local")
        assert (tmp_path / "local" / "link").read_bytes() == b"content"

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    @pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "sub/../../outside"])
    async def test_a_link_that_leads_out_fails_the_whole_download(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path, target: str
    ) -> None:
        await sandbox.files.write(f"{folder}/innocent", b"content")
        await sandbox.run(self.cmd_symlink(target, f"{folder}/link"))
        with pytest.raises(FileSystemError):
            await sandbox.files.download(folder, tmp_path / "local")
        assert names_in(tmp_path) == []

    @needs(_TRANSFERS, Capability.RUN_COMMAND)
    async def test_what_is_no_file_fails_the_whole_download(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        await sandbox.files.write(f"{folder}/innocent", b"content")
        await sandbox.run(self.cmd_fifo(f"{folder}/pipe"))
        with pytest.raises(FileSystemError):
            await sandbox.files.download(folder, tmp_path / "local")
        assert names_in(tmp_path) == []

    @needs(_TRANSFERS)
    @pytest.mark.parametrize(
        "member",
        [
            {"name": "tree/../../escaped"},
            {"name": "/escaped"},
            {"name": "tree/device", "type": tarfile.CHRTYPE},
            {"name": "tree/hard", "type": tarfile.LNKTYPE, "linkname": "/etc/passwd"},
            {"name": "tree/soft", "type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        ],
        ids=["dots", "absolute", "device", "hard-link", "soft-link"],
    )
    async def test_a_hostile_archive_writes_nothing(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path, member: dict[str, object]
    ) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        async with self.hostile_archive(sandbox, folder, _archive(member)):
            with pytest.raises(FileSystemError):
                await sandbox.files.download(folder, inner / "local")
        assert (names_in(tmp_path), names_in(inner)) == (["inner"], [])

    @needs(_TRANSFERS)
    async def test_a_hostile_archive_does_not_write_through_a_link(
        self, sandbox: AsyncSandbox, folder: str, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        archive = _archive(
            {"name": "tree/way", "type": tarfile.SYMTYPE, "linkname": str(outside)}, {"name": "tree/way/file"}
        )
        async with self.hostile_archive(sandbox, folder, archive):
            with pytest.raises(FileSystemError):
                await sandbox.files.download(folder, tmp_path / "local")
        assert names_in(outside) == []


def _plant(root: Path) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "plain").write_bytes(bytes(range(256)))
    (root / "sub" / "deep" / "file").write_bytes(b"deep")
    (root / "sub" / "-rf '☕'").write_bytes(b"odd")
    (root / "sub" / "program").write_bytes(b"#!/bin/sh\n")
    (root / "sub" / "program").chmod(0o755)
    (root / "sub" / "nothing").write_bytes(b"")


def _census(root: Path) -> dict[str, tuple[bool, bytes]]:
    """Every path below a folder, with whether its owner may execute it and what it holds."""
    return {
        str(path.relative_to(root)): (
            bool(path.stat().st_mode & 0o100),
            b"" if path.is_dir() else path.read_bytes(),
        )
        for path in root.rglob("*")
    }


def _archive(*members: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        root = tarfile.TarInfo("tree")
        root.type = tarfile.DIRTYPE
        root.mode = 0o755
        archive.addfile(root)
        for fields in members:
            info = tarfile.TarInfo()
            for name, value in fields.items():
                setattr(info, name, value)
            archive.addfile(info)
    return buffer.getvalue()
