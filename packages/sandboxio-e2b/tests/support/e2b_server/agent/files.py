"""The machine's files as envd sees them."""

from __future__ import annotations

import asyncio
import grp
import json
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from typing import Any

from .mux import AgentError, Stream

__all__ = ["Files", "resolve"]

_BLOCK = 64 * 1024
_TURN = 200
_KINDS = {
    stat.S_IFLNK: "L",
    stat.S_IFDIR: "d",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "S",
    stat.S_IFBLK: "D",
    stat.S_IFCHR: "Dc",
}
_SPECIAL = ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t"))


def resolve(path: str, home: str) -> str:
    """A clean absolute path. A relative one starts at home, and so does `~`."""
    if "\0" in path:
        raise AgentError("invalid_argument", "the path holds a NUL")
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    return "/" + os.path.normpath(os.path.join(home, path)).lstrip("/")


class Files:
    """What the host can do with files."""

    def __init__(self, home: str) -> None:
        self._home = home

    async def stat(self, stream: Stream, path: str) -> dict[str, Any]:
        """One entry."""
        return _entry(self._resolve(path))

    async def list(self, stream: Stream, path: str, depth: int) -> None:
        """Send the entries below a directory as lines, every directory before what is in it."""
        root = self._resolve(path)
        if not stat.S_ISDIR(os.stat(root).st_mode):
            raise AgentError("invalid_argument", f"path is not a directory: {root}")
        for count, entry in enumerate(_walk(root, max(depth, 1))):
            await stream.send(json.dumps(entry).encode() + b"\n")
            if count % _TURN == _TURN - 1:
                await asyncio.sleep(0)

    async def make_dir(self, stream: Stream, path: str) -> dict[str, Any]:
        """Make a directory and its parents."""
        target = self._resolve(path)
        if os.path.isdir(target):
            raise AgentError("already_exists", f"directory already exists: {target}")
        if os.path.lexists(target):
            raise AgentError("invalid_argument", f"path already exists but it is not a directory: {target}")
        os.makedirs(target)
        return _entry(target)

    async def move(self, stream: Stream, source: str, destination: str) -> dict[str, Any]:
        """Rename."""
        target = self._resolve(destination)
        os.rename(self._resolve(source), target)
        return _entry(target)

    async def remove(self, stream: Stream, path: str) -> None:
        """Remove whatever is there."""
        target = self._resolve(path)
        try:
            if stat.S_ISDIR(os.lstat(target).st_mode):
                shutil.rmtree(target)
            else:
                os.unlink(target)
        except FileNotFoundError:
            return

    async def size(self, stream: Stream, path: str) -> int:
        """The size of a regular file."""
        target = self._resolve(path)
        return _regular(target, os.stat(target)).st_size

    async def read(self, stream: Stream, path: str) -> None:
        """Send a regular file's bytes."""
        target = self._resolve(path)
        _regular(target, os.stat(target))
        fd = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _regular(target, os.fstat(fd))
            stream.reply(None)
            while True:
                block = os.read(fd, _BLOCK)
                if not block:
                    return
                await stream.send(block)
        finally:
            os.close(fd)

    async def write(self, stream: Stream, path: str) -> dict[str, Any]:
        """Replace a file's content with the stream's bytes."""
        target = self._resolve(path)
        if os.path.exists(target):
            _regular(target, os.stat(target))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            _regular(target, os.fstat(fd))
            while True:
                block = await stream.receive()
                if block is None:
                    break
                view = memoryview(block)
                while view:
                    view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        return _entry(target)

    def _resolve(self, path: str) -> str:
        return resolve(path, self._home)


def _regular(path: str, info: os.stat_result) -> os.stat_result:
    if stat.S_ISDIR(info.st_mode):
        raise AgentError("invalid_argument", f"path is a directory: {path}")
    if not stat.S_ISREG(info.st_mode):
        raise AgentError("invalid_argument", f"path is not a regular file: {path}")
    return info


def _walk(folder: str, depth: int) -> Iterator[dict[str, Any]]:
    names: list[str] = sorted(os.listdir(folder))
    for name in names:
        path = os.path.join(folder, name)
        try:
            info = os.lstat(path)
            entry = _entry(path, info)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        yield entry
        if depth > 1 and stat.S_ISDIR(info.st_mode):
            yield from _walk(path, depth - 1)


def _entry(path: str, info: Any = None) -> dict[str, Any]:
    info = info or os.lstat(path)
    entry = {
        "name": os.path.basename(path) or "/",
        "path": path,
        "type": _type(info.st_mode),
        "mode": info.st_mode & 0o777,
        "size": info.st_size,
        "permissions": _permissions(info.st_mode),
        "owner": _name(info.st_uid, os.getuid(), _user_name),
        "group": _name(info.st_gid, os.getgid(), _group_name),
        "modified_at": info.st_mtime_ns // 1000 / 1e6,  # the SDK cuts off what is below a microsecond
        "symlink_target": None,
    }
    if stat.S_ISLNK(info.st_mode):
        try:
            target = os.stat(path)
        except OSError:
            entry.update(symlink_target=path, type="FILE_TYPE_UNSPECIFIED", mode=0)
        else:
            mode = target.st_mode
            entry.update(symlink_target=os.path.realpath(path), type=_type(mode), mode=mode & 0o777)
    return entry


def _type(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "FILE_TYPE_FILE"
    return "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(mode) else "FILE_TYPE_UNSPECIFIED"


def _permissions(mode: int) -> str:
    """As Go prints a file mode."""
    kind = _KINDS.get(stat.S_IFMT(mode), "") + "".join(sign for bit, sign in _SPECIAL if mode & bit)
    return (kind or "-") + "".join(
        letter if mode & 0o400 >> place else "-" for place, letter in enumerate("rwxrwxrwx")
    )


def _user_name(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


def _group_name(gid: int) -> str:
    return grp.getgrgid(gid).gr_name


def _name(number: int, own: int, find: Any) -> str:
    try:
        return str(find(number))
    except KeyError:
        return "user" if number == own else str(number)
