"""The synchronous file system."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from sandboxio.models import FileInfo

if TYPE_CHECKING:
    from sandboxio.protocols import AsyncFileSystem
    from sandboxio.sync.loop import LoopThread

__all__ = ["SyncFileSystem"]


class SyncFileSystem:
    """The sandbox's files: `AsyncFileSystem` without `await`.

    As there, every method raises `PathNotFound` for a missing path, `FileSystemError` for any other
    refusal, and `SandboxGone` when the sandbox has ended or the handle was closed.

    Example: `sb.files.write("in.csv", b"a,b")`
    """

    def __init__(self, files: AsyncFileSystem, loop: LoopThread) -> None:
        self._files = files
        self._loop = loop

    def __repr__(self) -> str:
        return f"<SyncFileSystem of {self._files!r}>"

    def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """The whole content of a file. Links are followed.

        Args:
            path: The file.
            max_bytes: Refuse a larger one, having taken no more than this into memory. The default is
                2 GiB, and nothing above that is read: `download` is for large files.

        Raises:
            FileSystemError: It is larger, or cannot be read.
        """
        return self._loop.call(partial(self._files.read, path, max_bytes=max_bytes))

    def write(self, path: str, data: bytes | str) -> None:
        """Create or replace a file; its parent must exist. Text is written as UTF-8."""
        self._loop.call(partial(self._files.write, path, data))

    def upload(self, local: str | os.PathLike[str], path: str) -> None:
        """Copy a local file or directory into the sandbox, as `path` itself. It streams.

        Raises:
            FileSystemError: The local side cannot be read, or the sandbox's side not be written.
        """
        self._loop.call(partial(self._files.upload, local, path))

    def download(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copy a file or directory out, as `local` itself. It streams.

        A file replaces a file at `local`. A directory needs `local` to be missing or an empty
        directory. Nothing is ever written outside `local`: names or links that would lead out of
        it, and devices, fail the whole download, and then nothing is left of it.

        Raises:
            PathNotFound: `path` does not exist.
            FileSystemError: `local` is taken, or the copy would lead outside it.
        """
        self._loop.call(partial(self._files.download, path, local))

    def ls(self, path: str = ".") -> tuple[FileInfo, ...]:
        """The entries of a directory, sorted by name."""
        return self._loop.call(partial(self._files.ls, path))

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Make a directory; with `parents` also what is missing above, and an existing one is fine."""
        self._loop.call(partial(self._files.mkdir, path, parents=parents))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or link; a directory only with `recursive`."""
        self._loop.call(partial(self._files.remove, path, recursive=recursive))

    def exists(self, path: str) -> bool:
        """Whether the path exists; a dangling link does."""
        return self._loop.call(partial(self._files.exists, path))

    def stat(self, path: str) -> FileInfo:
        """What is known about one path."""
        return self._loop.call(partial(self._files.stat, path))

    def rename(self, source: str, target: str) -> None:
        """Move within the sandbox, replacing a file at `target`."""
        self._loop.call(partial(self._files.rename, source, target))
