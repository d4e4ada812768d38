"""The local side of transfers: what is read from, and written to, the host's own disk.

A download is written beside its target under a temporary name and moved into place when it is
complete, so that nothing half-done is ever seen, and nothing outside the target is ever touched.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final, TypeVar

from typing_extensions import TypeVarTuple, Unpack

from sandboxio.adapter.tar import END, header, padding
from sandboxio.adapter.threads import BlockingCalls
from sandboxio.errors import ConfigurationError, FileSystemError, PathNotFound
from sandboxio.release import uninterrupted

__all__ = ["create_file", "local_path", "new_file", "new_folder", "on_disk", "pack_tree", "read_file"]

CHUNK_BYTES: Final = 1024 * 1024

_calls: Final = BlockingCalls("local files", 8)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def local_path(path: str | os.PathLike[str]) -> Path:
    """A local path as given by a caller.

    Raises:
        ConfigurationError: It is empty, holds a NUL, or is no path.
    """
    try:
        text = os.fspath(path)
    except TypeError:
        text = ""
    if not text or "\0" in text:
        raise ConfigurationError("the local path is empty or no path", hint="give a str or a Path")
    return Path(text)


async def on_disk(func: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Make a blocking call about local files in a thread.

    Raises:
        PathNotFound, FileSystemError: What the operating system refused.
    """
    try:
        return await _calls.run(func, *args)
    except FileNotFoundError as exc:
        raise PathNotFound(
            f"the local path {exc.filename!r} does not exist", hint="check the local path of the transfer"
        ) from exc
    except OSError as exc:
        where = "" if exc.filename is None else f": {exc.filename!r}"
        raise FileSystemError(f"the local side of the transfer failed: {exc.strerror or exc}{where}") from exc


async def read_file(path: Path, size: int) -> AsyncGenerator[bytes, None]:
    """Exactly `size` bytes of a local file.

    Raises:
        FileSystemError: The file has become shorter meanwhile.
    """
    file = await on_disk(_open_regular, path)
    try:
        left = size
        while left:
            chunk = await on_disk(file.read, min(CHUNK_BYTES, left))
            if not chunk:
                raise FileSystemError(
                    f"the local file {str(path)!r} became shorter while it was read",
                    hint="upload it when nothing writes to it",
                )
            left -= len(chunk)
            yield chunk
    finally:
        file.close()


def _open_regular(path: Path) -> BinaryIO:
    """Never waits on a named pipe that took the file's place."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is no regular file", str(path))
    return file


async def pack_tree(folder: Path, owner: tuple[int, int]) -> AsyncGenerator[bytes, None]:
    """The content of a local directory as a tar archive, links kept as links.

    Raises:
        FileSystemError: It holds something that is no file, directory or link.
    """
    for path, name, status in await on_disk(_walk, folder):
        info = tarfile.TarInfo(name)
        info.uid, info.gid = owner
        info.mode = stat.S_IMODE(status.st_mode) & 0o777
        info.mtime = int(status.st_mtime)
        if stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
            yield header(info)
        elif stat.S_ISLNK(status.st_mode):
            info.type = tarfile.SYMTYPE
            info.linkname = await on_disk(os.readlink, path)
            yield header(info)
        elif stat.S_ISREG(status.st_mode):
            info.size = status.st_size
            yield header(info)
            async with aclosing(read_file(path, info.size)) as chunks:
                async for chunk in chunks:
                    yield chunk
            yield padding(info.size)
        else:
            raise FileSystemError(
                f"the local {str(path)!r} is no file, directory or link",
                hint="remove it from the directory before the upload",
            )
    yield END


def _walk(folder: Path) -> list[tuple[Path, str, os.stat_result]]:
    """All that is below a directory, each directory before its content."""
    found: list[tuple[Path, str, os.stat_result]] = []
    pending = [(folder, "")]
    while pending:
        parent, prefix = pending.pop()
        with os.scandir(parent) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = f"{prefix}{entry.name}"
                found.append((Path(entry.path), name, entry.stat(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry.path), f"{name}/"))
    return found


@asynccontextmanager
async def new_file(target: Path, *, executable: bool) -> AsyncGenerator[BinaryIO, None]:
    """A file to write; it becomes `target` when the block ends well, and is removed otherwise."""
    name = _name_beside(target)
    try:
        file = await on_disk(_make_file_for, target, name, 0o777 if executable else 0o666)
        try:
            yield file
            await on_disk(file.close)
        finally:
            file.close()
        await on_disk(os.replace, name, target)
    finally:
        await uninterrupted(lambda: _calls.run(_remove_file, name))


@asynccontextmanager
async def new_folder(target: Path) -> AsyncGenerator[Path, None]:
    """A folder to fill; it becomes `target` when the block ends well, and is removed otherwise."""
    name = _name_beside(target)
    try:
        await on_disk(_make_folder_for, target, name)
        yield name
        await on_disk(os.replace, name, target)
    finally:
        await uninterrupted(lambda: _calls.run(_remove_tree, name))


def create_file(path: Path, mode: int) -> BinaryIO:
    """A new file to write; an existing path, be it a link, is an error."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


def _name_beside(target: Path) -> Path:
    """Chosen before anything is made, so that it can be removed whatever happens."""
    if target.name in ("", ".."):
        raise ConfigurationError(
            f"the local path {str(target)!r} is where a download could go, not what it becomes",
            hint="name the file or directory to make, such as './copy'",
        )
    return target.with_name(f".{target.name[:50]}.{token_hex(8)}.part")


def _make_file_for(target: Path, name: Path, mode: int) -> BinaryIO:
    _require_parent(target)
    if target.is_dir():
        raise FileSystemError(f"the local path {str(target)!r} is a directory", hint="name the file to write")
    return create_file(name, mode)


def _make_folder_for(target: Path, name: Path) -> None:
    _require_parent(target)
    if target.is_file() or target.is_symlink() or (target.is_dir() and any(target.iterdir())):
        raise FileSystemError(
            f"the local path {str(target)!r} exists and is no empty directory",
            hint="name a path that does not exist, or an empty directory",
        )
    name.mkdir()


def _remove_file(name: Path) -> None:
    name.unlink(missing_ok=True)


def _remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _require_parent(target: Path) -> None:
    if not target.parent.is_dir():
        raise PathNotFound(f"the local directory {str(target.parent)!r} does not exist", hint="make it first")
