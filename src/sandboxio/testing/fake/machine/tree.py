"""The files of a virtual sandbox: a tree in memory with links, modes and a full disk."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

__all__ = ["FifoNode", "FileNode", "FileTree", "FolderNode", "LinkNode", "Node"]

_LINK_LIMIT = 40
_MIB = 1024 * 1024


@dataclass(slots=True)
class FileNode:
    """A regular file."""

    data: bytearray = field(default_factory=bytearray)
    mode: int = 0o644
    mtime: float = 0.0


@dataclass(slots=True)
class FolderNode:
    """A directory."""

    entries: dict[str, Node] = field(default_factory=lambda: dict[str, "Node"]())
    mode: int = 0o755
    mtime: float = 0.0


@dataclass(slots=True)
class LinkNode:
    """A symbolic link."""

    target: str
    mode: int = 0o777
    mtime: float = 0.0


@dataclass(slots=True)
class FifoNode:
    """A named pipe; it can be made, listed and removed, but not opened."""

    mode: int = 0o644
    mtime: float = 0.0


Node = FileNode | FolderNode | LinkNode | FifoNode


class FileTree:
    """All files of one sandbox. Every refusal is the `OSError` that Linux would give.

    Args:
        disk_mb: How much all files together may hold, in MiB.
        clock: Gives the time of a change, in seconds.
    """

    def __init__(self, disk_mb: int, clock: Callable[[], float]) -> None:
        self._room = disk_mb * _MIB
        self._clock = clock
        self.root = FolderNode()

    def find(self, path: str, *, follow: bool = True) -> Node:
        """The node at an absolute path.

        Raises:
            OSError: There is none, or the way to it leads through what is no directory.
        """
        return self._walk(path, follow=follow)

    def folder(self, path: str) -> FolderNode:
        """The directory at a path."""
        node = self.find(path)
        if not isinstance(node, FolderNode):
            raise _refused(errno.ENOTDIR, path)
        return node

    def file(self, path: str) -> FileNode:
        """The regular file at a path, links followed."""
        node = self.find(path)
        if isinstance(node, FolderNode):
            raise _refused(errno.EISDIR, path)
        if not isinstance(node, FileNode):
            raise _refused(errno.ENXIO, path)
        return node

    def exists(self, path: str) -> bool:
        """Whether there is anything, a dangling link included."""
        try:
            self.find(path, follow=False)
        except OSError:
            return False
        return True

    def open_file(self, path: str, *, mode: int = 0o644, truncate: bool = False) -> FileNode:
        """The file at a path, made if it is not there."""
        parent, name, node = self._locate(path, follow=True)
        if node is None:
            node = parent.entries[name] = FileNode(mode=mode, mtime=self._clock())
            parent.mtime = self._clock()
        if isinstance(node, FolderNode):
            raise _refused(errno.EISDIR, path)
        if not isinstance(node, FileNode):
            raise _refused(errno.ENXIO, path)
        if truncate:
            self._room += len(node.data)
            node.data.clear()
            node.mtime = self._clock()
        return node

    def replace(self, path: str, data: bytes, mode: int) -> None:
        """Make the file at a path hold exactly this, or leave all as it was."""
        parent, name, node = self._locate(path, follow=True)
        if isinstance(node, FolderNode):
            raise _refused(errno.EISDIR, path)
        old = len(node.data) if isinstance(node, FileNode) else 0
        if len(data) - old > self._room:
            raise _refused(errno.ENOSPC, path)
        self._room -= len(data) - old
        parent.entries[name] = FileNode(bytearray(data), mode, self._clock())
        parent.mtime = self._clock()

    def extend(self, node: FileNode, position: int, data: memoryview) -> int:
        """Write into a file as far as there is room, and return how many bytes were taken."""
        growth = max(position + len(data) - len(node.data), 0)
        if growth > self._room:
            data = data[: max(len(data) - growth + self._room, 0)]
            growth = self._room
        if not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        node.data[position : position + len(data)] = data
        node.mtime = self._clock()
        self._room -= growth
        return len(data)

    def make_folder(self, path: str, *, parents: bool = False, mode: int = 0o755) -> None:
        """Make a directory."""
        if parents:
            made = ""
            for part in _parts(path):
                made += f"/{part}"
                try:
                    self.folder(made)
                except FileNotFoundError:
                    self.make_folder(made, mode=mode)
            return
        parent, name, node = self._locate(path, follow=False)
        if node is not None:
            raise _refused(errno.EEXIST, path)
        parent.entries[name] = FolderNode(mode=mode, mtime=self._clock())
        parent.mtime = self._clock()

    def make_node(self, path: str, node: LinkNode | FifoNode) -> None:
        """Make a link or a named pipe."""
        parent, name, there = self._locate(path, follow=False)
        if there is not None:
            raise _refused(errno.EEXIST, path)
        node.mtime = self._clock()
        parent.entries[name] = node

    def remove(self, path: str, *, recursive: bool) -> None:
        """Remove what is at a path; a directory only recursively."""
        parent, name, node = self._locate(path, follow=False)
        if node is None:
            raise _refused(errno.ENOENT, path)
        if isinstance(node, FolderNode) and not recursive:
            raise _refused(errno.EISDIR, path)
        if not name:
            raise _refused(errno.EBUSY, path)
        self._room += sum(len(below.data) for _, below in _descend("", node) if isinstance(below, FileNode))
        del parent.entries[name]
        parent.mtime = self._clock()

    def rename(self, source: str, target: str) -> None:
        """Move, replacing a file."""
        old_parent, old_name, node = self._locate(source, follow=False)
        if node is None:
            raise _refused(errno.ENOENT, source)
        if not old_name:
            raise _refused(errno.EBUSY, source)
        parent, name, there = self._locate(target, follow=False)
        if there is node:
            return
        if isinstance(there, FolderNode):
            if not isinstance(node, FolderNode):
                raise _refused(errno.EISDIR, target)
            if there.entries:
                raise _refused(errno.ENOTEMPTY, target)
        elif there is not None and isinstance(node, FolderNode):
            raise _refused(errno.ENOTDIR, target)
        if isinstance(node, FolderNode) and any(below is parent for _, below in _descend("", node)):
            raise _refused(errno.EINVAL, target)
        if isinstance(there, FileNode):
            self._room += len(there.data)
        del old_parent.entries[old_name]
        parent.entries[name] = node
        old_parent.mtime = parent.mtime = self._clock()

    def below(self, path: str) -> Iterator[tuple[str, Node]]:
        """Everything below a directory, by its relative path, parents first."""
        for name, node in self.folder(path).entries.items():
            yield from _descend(name, node)

    def _locate(self, path: str, *, follow: bool) -> tuple[FolderNode, str, Node | None]:
        """The directory that holds, or would hold, the last part of a path."""
        head, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return self.root, "", self.find(path)
        parent = self.folder(head or "/")
        node = parent.entries.get(name)
        if follow and isinstance(node, LinkNode):
            with suppress(FileNotFoundError):  # a dangling link: writing to it makes its target
                self.find(path)
            return self._locate(posixpath.join(head or "/", node.target), follow=True)
        return parent, name, node

    def _walk(self, path: str, *, follow: bool) -> Node:
        ahead = _parts(path)[::-1]
        as_folder = path.endswith(("/", "/."))
        trail: list[Node] = [self.root]
        links = 0
        while ahead:
            part = ahead.pop()
            folder = trail[-1]
            if not isinstance(folder, FolderNode):
                raise _refused(errno.ENOTDIR, path)
            if part == "..":
                trail = trail[:-1] or trail
                continue
            found = folder.entries.get(part)
            if found is None:
                raise _refused(errno.ENOENT, path)
            if isinstance(found, LinkNode) and (follow or ahead or as_folder):
                links += 1
                if links > _LINK_LIMIT:
                    raise _refused(errno.ELOOP, path)
                if found.target.startswith("/"):
                    trail = trail[:1]
                ahead += _parts(found.target)[::-1]
                continue
            trail.append(found)
        if as_folder and not isinstance(trail[-1], FolderNode):
            raise _refused(errno.ENOTDIR, path)
        return trail[-1]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _descend(name: str, node: Node) -> Iterator[tuple[str, Node]]:
    yield name, node
    if isinstance(node, FolderNode):
        for inner, below in node.entries.items():
            yield from _descend(f"{name}/{inner}" if name else inner, below)


def _refused(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
