"""Unpacking a hostile archive into a fresh local folder, and never anywhere else.

Three rules hold it together. Every file and directory is made new, below real directories that
were made here. Links are made last, when nothing is written any more. A link may go up only by
leading `..` parts, and not above the tree; so none of them, alone or chained, leads out of it.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from sandboxio.adapter.local import create_file, on_disk
from sandboxio.adapter.tar import Member, read_members
from sandboxio.errors import FileSystemError

__all__ = ["extract_tree"]

_ENTRY_LIMIT: Final = 1_000_000
_LINK_BYTES_LIMIT: Final = 64 * 1024 * 1024
_PATH_LIMIT: Final = 4096
_DEPTH_LIMIT: Final = 200
_FILE_BITS: Final = 0o755


async def extract_tree(archive: AsyncIterator[bytes], folder: Path, *, max_bytes: int) -> int:
    """Unpack below `folder`, which is empty, and return the number of bytes written.

    The archive's first member is the directory itself; the others are named below it.

    Raises:
        FileSystemError: A member would lead out of the tree, is a device, comes twice, or the whole
            is larger than `max_bytes`.
    """
    tree = _Tree(folder, max_bytes)
    async for member in read_members(archive):
        await tree.add(member)
    await tree.make_links()
    return tree.written


class _Tree:
    """What is being unpacked, and the bounds that it must keep."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._root: str | None = None
        self._entries = 0
        self._link_bytes = 0
        self._links: list[tuple[tuple[str, ...], tarfile.TarInfo, str]] = []
        self._made: set[tuple[str, ...]] = {()}
        self.written = 0

    async def add(self, member: Member) -> None:
        """Unpack a member, or note it when it is a link."""
        info = member.info
        if self._root is None:
            self._root = info.name.rstrip("/")
            if not info.isdir():
                raise _refused(info, "is not the directory that was asked for")
            return
        self._count(entries=1, size=info.size if info.isreg() else 0)
        parts = _inner_parts(info, info.name, self._root)
        if info.isdir():
            await self._make_folders(parts)
        elif info.isreg():
            await self._make_folders(parts[:-1])
            await _write_file(member, self._folder.joinpath(*parts))
        elif info.issym():
            _require_inner_link(info, depth=len(parts) - 1)
            self._note_link(parts, info, info.linkname)
        elif info.islnk():
            inner = _inner_parts(info, info.linkname, self._root)
            self._note_link(parts, info, str(self._folder.joinpath(*inner)))
        else:
            raise _refused(info, "is a device or a pipe")

    async def make_links(self) -> None:
        """Make the links, now that nothing else is written."""
        for parts, info, destination in self._links:
            await self._make_folders(parts[:-1])
            await on_disk(_link, self._folder.joinpath(*parts), info, destination)

    async def _make_folders(self, parts: tuple[str, ...]) -> None:
        missing = len(parts)
        while parts[:missing] not in self._made:
            missing -= 1
        for length in range(missing + 1, len(parts) + 1):
            self._count(entries=1, size=0)
            await on_disk(self._folder.joinpath(*parts[:length]).mkdir)
            self._made.add(parts[:length])

    def _note_link(self, parts: tuple[str, ...], info: tarfile.TarInfo, destination: str) -> None:
        if len(info.linkname) > _PATH_LIMIT:
            raise _refused(info, "is a link with a target longer than any path")
        self._link_bytes += sum(map(len, parts)) + len(destination)
        if self._link_bytes > _LINK_BYTES_LIMIT:
            raise self._too_large()
        self._links.append((parts, info, destination))

    def _count(self, *, entries: int, size: int) -> None:
        self._entries += entries
        self.written += size
        if self._entries > _ENTRY_LIMIT or self.written > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> FileSystemError:
        return FileSystemError(
            f"the directory holds more than {_ENTRY_LIMIT} entries or {self._max_bytes} bytes",
            hint="download parts of it",
        )


def _inner_parts(info: tarfile.TarInfo, name: str, root: str) -> tuple[str, ...]:
    """The parts of a name below the root."""
    inner = name.rstrip("/")
    if root not in ("", "."):
        if not inner.startswith(f"{root}/"):
            raise _refused(info, "is named outside the directory")
        inner = inner[len(root) + 1 :]
    inner = inner.removeprefix("./")
    parts = tuple(inner.split("/"))
    if len(parts) > _DEPTH_LIMIT:
        raise _refused(info, f"lies deeper than {_DEPTH_LIMIT} directories")
    if len(inner) > _PATH_LIMIT or any(_unsafe(part) for part in parts):
        raise _refused(info, "has an unsafe name")
    return parts


def _unsafe(part: str) -> bool:
    separators = os.sep + (os.altsep or "")
    drive = os.name == "nt" and ":" in part
    return part in ("", ".", "..") or "\0" in part or drive or any(s in part for s in separators)


def _require_inner_link(info: tarfile.TarInfo, *, depth: int) -> None:
    parts = info.linkname.split("/")
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    rest = parts[ups:]
    if not info.linkname or info.linkname.startswith("/") or ups > depth or ".." in rest:
        raise _refused(info, "is a link that leads, or may lead, out of the directory")
    if "\0" in info.linkname or (os.name == "nt" and any(c in info.linkname for c in ":\\")):
        raise _refused(info, "is a link with an unsafe target")


async def _write_file(member: Member, target: Path) -> None:
    mode = member.info.mode & _FILE_BITS | 0o600
    file = await on_disk(create_file, target, mode)
    try:
        async for chunk in member.data:
            await on_disk(file.write, chunk)
        await on_disk(file.close)
    finally:
        file.close()


def _link(target: Path, info: tarfile.TarInfo, destination: str) -> None:
    if info.issym():
        target.symlink_to(destination)
    elif Path(destination).is_symlink() or not Path(destination).is_file():
        raise OSError(0, "a hard link does not lead to a file of the directory", target.name)
    else:
        os.link(destination, target)


def _shown(name: str) -> str:
    """A name in full, so that no secret in it escapes redaction by being cut; or its length."""
    return repr(name) if len(name) <= _PATH_LIMIT else f"a name of {len(name)} characters"


def _refused(info: tarfile.TarInfo, reason: str) -> FileSystemError:
    return FileSystemError(
        f"the download was refused: {_shown(info.name)} {reason}",
        hint="the sandbox's files are not to be trusted; download single files by name instead",
    )
