"""Files in the sandbox: exact bytes under any name, and the right error for what is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sandboxio.errors import ConfigurationError, FileSystemError, PathNotFound
from sandboxio.models import Capability
from sandboxio.protocols import AsyncFileSystem, AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["FilesTests"]

_FILES = Capability.FILESYSTEM
_HOSTILE_NAMES = ("'; touch pwned; #", "-rf", "$(touch pwned)", "a b", "☕", "new\nline", "*", "back\\slash")

_ON_MISSING: dict[str, Callable[[AsyncFileSystem, str], Awaitable[object]]] = {
    "read": lambda files, path: files.read(path),
    "write": lambda files, path: files.write(f"{path}/file", b"x"),
    "ls": lambda files, path: files.ls(path),
    "stat": lambda files, path: files.stat(path),
    "mkdir": lambda files, path: files.mkdir(f"{path}/folder"),
    "remove": lambda files, path: files.remove(path),
    "remove-recursive": lambda files, path: files.remove(path, recursive=True),
    "rename": lambda files, path: files.rename(path, f"{path}-renamed"),
}


class FilesTests(SuiteBase):
    """Rows on `files`, besides transfers."""

    @needs(_FILES)
    async def test_bytes_are_read_as_they_were_written(self, sandbox: AsyncSandbox, folder: str) -> None:
        data = bytes(range(256)) * 3 + b"\r\n\0"
        await sandbox.files.write(f"{folder}/data", data)
        assert await sandbox.files.read(f"{folder}/data") == data

    @needs(_FILES)
    async def test_text_is_written_as_utf_8(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/text", "☕\n")
        assert await sandbox.files.read(f"{folder}/text") == b"\xe2\x98\x95\n"

    @needs(_FILES)
    async def test_an_empty_file_can_be_written_and_read(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/empty", b"")
        assert await sandbox.files.read(f"{folder}/empty") == b""

    @needs(_FILES)
    async def test_a_megabyte_can_be_written_and_read(self, sandbox: AsyncSandbox, folder: str) -> None:
        data = b"0123456789abcde\n" * 65536
        await sandbox.files.write(f"{folder}/large", data)
        assert await sandbox.files.read(f"{folder}/large") == data

    @needs(_FILES)
    async def test_writing_replaces_a_longer_file_whole(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/file", b"long content")
        await sandbox.files.write(f"{folder}/file", b"short")
        assert await sandbox.files.read(f"{folder}/file") == b"short"

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_a_relative_path_means_the_same_place_as_in_run(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/here", b"same place")
        assert (await sandbox.run(["cat", f"{folder}/here"])).stdout == "same place"

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_what_a_command_wrote_can_be_read(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.run("printf made > file", cwd=folder)
        assert await sandbox.files.read(f"{folder}/file") == b"made"

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_a_command_can_change_and_remove_a_file_that_was_written(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/file", b"one\n")
        changed = await sandbox.run("echo two >> file && cat file && rm file", cwd=folder)
        assert (changed.exit_code, changed.stdout) == (0, "one\ntwo\n")
        assert not await sandbox.files.exists(f"{folder}/file")

    @needs(_FILES)
    async def test_an_absolute_path_is_taken_as_it_is(self, sandbox: AsyncSandbox) -> None:
        path = f"/tmp/{unique('file')}"
        await sandbox.files.write(path, b"absolute")
        assert await sandbox.files.read(path) == b"absolute"

    @needs(_FILES)
    async def test_a_listing_is_sorted_and_tells_what_each_entry_is(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/b", b"12345")
        await sandbox.files.mkdir(f"{folder}/c")
        await sandbox.files.write(f"{folder}/.a", b"")
        entries = await sandbox.files.ls(folder)
        assert [(entry.name, entry.is_dir) for entry in entries] == [(".a", False), ("b", False), ("c", True)]
        assert entries[1].size in (5, None)
        assert all(entry.path.startswith("/") for entry in entries)
        assert all(entry.path.endswith(f"/{folder}/{entry.name}") for entry in entries)

    @needs(_FILES)
    async def test_an_empty_folder_lists_nothing(self, sandbox: AsyncSandbox, folder: str) -> None:
        assert await sandbox.files.ls(folder) == ()

    @needs(_FILES)
    async def test_the_default_listing_is_of_the_working_folder(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        assert folder in [entry.name for entry in await sandbox.files.ls()]

    @needs(_FILES)
    async def test_stat_tells_about_a_file(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/file", b"12345")
        info = await sandbox.files.stat(f"{folder}/file")
        assert (info.name, info.is_dir) == ("file", False)
        assert info.path.endswith(f"/{folder}/file")
        assert info.size in (5, None)
        assert info.mode is None or 0 <= info.mode <= 0o7777

    @needs(_FILES)
    async def test_stat_tells_about_a_folder(self, sandbox: AsyncSandbox, folder: str) -> None:
        info = await sandbox.files.stat(folder)
        assert (info.name, info.is_dir) == (folder, True)

    @needs(_FILES)
    async def test_exists_knows_what_is_there_and_what_is_not(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/file", b"")
        assert await sandbox.files.exists(folder)
        assert await sandbox.files.exists(f"{folder}/file")
        assert not await sandbox.files.exists(f"{folder}/other")
        assert not await sandbox.files.exists(f"{folder}/other/below")

    @needs(_FILES)
    async def test_a_file_larger_than_was_asked_for_is_not_read(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/file", b"x" * 1000)
        assert await sandbox.files.read(f"{folder}/file", max_bytes=1000) == b"x" * 1000
        with pytest.raises(FileSystemError):
            await sandbox.files.read(f"{folder}/file", max_bytes=999)
        for bound in (-1, 1.5, True):
            with pytest.raises(ConfigurationError):
                await sandbox.files.read(f"{folder}/file", max_bytes=bound)  # type: ignore[arg-type]

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_a_link_does_not_hide_how_large_a_file_is(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/file", b"x" * 1000)
        await sandbox.run(self.cmd_symlink("file", f"{folder}/link"))
        assert await sandbox.files.read(f"{folder}/link") == b"x" * 1000
        with pytest.raises(FileSystemError):
            await sandbox.files.read(f"{folder}/link", max_bytes=999)

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_a_linked_folder_is_a_way_to_what_it_holds(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        files = sandbox.files
        await files.mkdir(f"{folder}/real")
        await sandbox.run(self.cmd_symlink("real", f"{folder}/link"))
        await files.write(f"{folder}/link/written", b"1")
        await files.mkdir(f"{folder}/link/made")
        await files.mkdir(f"{folder}/link", parents=True)
        await files.write(f"{folder}/file", b"2")
        await files.rename(f"{folder}/file", f"{folder}/link/moved")
        assert [entry.name for entry in await files.ls(f"{folder}/real")] == ["made", "moved", "written"]
        assert await files.read(f"{folder}/link/moved") == b"2"

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_a_dangling_link_exists(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.run(self.cmd_symlink("nowhere", f"{folder}/link"))
        assert await sandbox.files.exists(f"{folder}/link")

    @needs(_FILES)
    async def test_making_folders_with_parents_makes_them_all(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.mkdir(f"{folder}/a/b/c", parents=True)
        assert (await sandbox.files.stat(f"{folder}/a/b/c")).is_dir

    @needs(_FILES)
    async def test_making_a_folder_that_exists_is_fine_with_parents_only(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.mkdir(folder, parents=True)
        with pytest.raises(FileSystemError):
            await sandbox.files.mkdir(folder)

    @needs(_FILES)
    async def test_a_file_can_be_removed(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/file", b"")
        await sandbox.files.remove(f"{folder}/file")
        assert await sandbox.files.ls(folder) == ()

    @needs(_FILES)
    async def test_a_folder_is_removed_only_recursively(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.mkdir(f"{folder}/a")
        await sandbox.files.write(f"{folder}/a/file", b"")
        with pytest.raises(FileSystemError):
            await sandbox.files.remove(f"{folder}/a")
        assert await sandbox.files.exists(f"{folder}/a/file")
        await sandbox.files.remove(f"{folder}/a", recursive=True)
        assert not await sandbox.files.exists(f"{folder}/a")

    @needs(_FILES, Capability.RUN_COMMAND)
    async def test_removing_a_link_leaves_its_target(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.mkdir(f"{folder}/target")
        await sandbox.files.write(f"{folder}/target/file", b"kept")
        await sandbox.run(self.cmd_symlink("target", f"{folder}/link"))
        await sandbox.files.remove(f"{folder}/link", recursive=True)
        assert await sandbox.files.read(f"{folder}/target/file") == b"kept"

    @needs(_FILES)
    async def test_renaming_moves_a_file(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/old", b"moved")
        await sandbox.files.rename(f"{folder}/old", f"{folder}/new")
        assert await sandbox.files.read(f"{folder}/new") == b"moved"
        assert not await sandbox.files.exists(f"{folder}/old")

    @needs(_FILES)
    async def test_renaming_replaces_a_file_at_the_target(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/old", b"moved")
        await sandbox.files.write(f"{folder}/new", b"replaced")
        await sandbox.files.rename(f"{folder}/old", f"{folder}/new")
        assert await sandbox.files.read(f"{folder}/new") == b"moved"

    @needs(_FILES)
    async def test_renaming_moves_a_folder_with_its_content(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.mkdir(f"{folder}/old")
        await sandbox.files.write(f"{folder}/old/file", b"inside")
        await sandbox.files.rename(f"{folder}/old", f"{folder}/new")
        assert await sandbox.files.read(f"{folder}/new/file") == b"inside"

    @needs(_FILES)
    @pytest.mark.parametrize("operation", _ON_MISSING)
    async def test_a_missing_path_is_path_not_found(
        self, sandbox: AsyncSandbox, folder: str, operation: str
    ) -> None:
        with pytest.raises(PathNotFound):
            await _ON_MISSING[operation](sandbox.files, f"{folder}/missing")

    @needs(_FILES)
    async def test_reading_a_folder_is_a_file_system_error(self, sandbox: AsyncSandbox, folder: str) -> None:
        with pytest.raises(FileSystemError) as caught:
            await sandbox.files.read(folder)
        assert not isinstance(caught.value, PathNotFound)

    @needs(_FILES)
    async def test_writing_onto_a_folder_is_a_file_system_error(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        with pytest.raises(FileSystemError) as caught:
            await sandbox.files.write(folder, b"x")
        assert not isinstance(caught.value, PathNotFound)

    @needs(_FILES)
    async def test_listing_a_file_is_a_file_system_error(self, sandbox: AsyncSandbox, folder: str) -> None:
        await sandbox.files.write(f"{folder}/file", b"")
        with pytest.raises(FileSystemError):
            await sandbox.files.ls(f"{folder}/file")

    @needs(_FILES)
    @pytest.mark.parametrize("name", _HOSTILE_NAMES)
    async def test_a_hostile_name_is_only_a_name(self, sandbox: AsyncSandbox, folder: str, name: str) -> None:
        path = f"{folder}/{name}"
        await sandbox.files.write(path, b"content")
        assert [entry.name for entry in await sandbox.files.ls(folder)] == [name]
        assert await sandbox.files.read(path) == b"content"
        await sandbox.files.rename(path, f"{path}2")
        assert (await sandbox.files.stat(f"{path}2")).name == f"{name}2"
        await sandbox.files.remove(f"{path}2")
        assert await sandbox.files.ls(folder) == ()
        assert not await sandbox.files.exists("pwned")

    @needs(_FILES)
    @pytest.mark.parametrize("name", ["-rf", "--help"])
    async def test_a_relative_name_is_no_option(self, sandbox: AsyncSandbox, name: str) -> None:
        await sandbox.files.write(name, b"content")
        try:
            assert await sandbox.files.read(name) == b"content"
            assert name in [entry.name for entry in await sandbox.files.ls()]
        finally:
            await sandbox.files.remove(name)

    @needs(_FILES)
    @pytest.mark.parametrize("path", ["", "a\0b", "\ud800"], ids=["empty", "nul", "surrogate"])
    async def test_what_cannot_be_a_path_is_refused(self, sandbox: AsyncSandbox, path: str) -> None:
        with pytest.raises(ConfigurationError):
            await sandbox.files.read(path)
