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

_MEMBER_LIMIT: Final = 1_000_000
_PATH_LIMIT: Final = 4096
_FILE_BITS: Final = 0o755


async def extract_tree(archive: AsyncIterator[bytes], folder: Path, *, max_bytes: int) -> int:
    """Unpack below `folder`, which is empty, and return the number of bytes written.

    The archive's first member is the directory itself; the others are named below it.

    Raises:
        FileSystemError: A member would lead out of the tree, is a device, comes twice, or the whole
            is larger than `max_bytes`.
    """
    root: str | None = None
    links: list[tuple[Path, tarfile.TarInfo, str]] = []
    written = count = 0
    async for member in read_members(archive):
        info = member.info
        if root is None:
            root = info.name.rstrip("/")
            if not info.isdir():
                raise _refused(info, "is not the directory that was asked for")
            continue
        count += 1
        written += info.size if info.isreg() else 0
        if count > _MEMBER_LIMIT or written > max_bytes:
            raise FileSystemError(
                f"the directory holds more than {_MEMBER_LIMIT} entries or {max_bytes} bytes",
                hint="download parts of it",
            )
        parts = _inner_parts(info, info.name, root)
        target = folder.joinpath(*parts)
        if info.isdir():
            await on_disk(_make_folder, folder, parts)
        elif info.isreg():
            await on_disk(_make_folder, folder, parts[:-1])
            await _write_file(member, target)
        elif info.issym():
            _require_inner_link(info, depth=len(parts) - 1)
            links.append((target, info, info.linkname))
        elif info.islnk():
            inner = _inner_parts(info, info.linkname, root)
            links.append((target, info, str(folder.joinpath(*inner))))
        else:
            raise _refused(info, "is a device or a pipe")
    for target, info, destination in links:
        await on_disk(_make_folder, folder, target.relative_to(folder).parts[:-1])
        await on_disk(_link, target, info, destination)
    return written


def _inner_parts(info: tarfile.TarInfo, name: str, root: str) -> tuple[str, ...]:
    """The parts of a name below the root."""
    inner = name.rstrip("/")
    if root not in ("", "."):
        if not inner.startswith(f"{root}/"):
            raise _refused(info, "is named outside the directory")
        inner = inner[len(root) + 1 :]
    inner = inner.removeprefix("./")
    parts = tuple(inner.split("/"))
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


def _make_folder(root: Path, parts: tuple[str, ...]) -> None:
    folder = root
    for part in parts:
        folder = folder / part
        try:
            folder.mkdir(mode=_FILE_BITS)
        except FileExistsError:
            if not folder.is_dir() or folder.is_symlink():
                raise


async def _write_file(member: Member, target: Path) -> None:
    mode = member.info.mode & _FILE_BITS | 0o600
    file = await on_disk(create_file, target, mode)
    try:
        async for chunk in member.data:
            await on_disk(file.write, chunk)
    finally:
        await on_disk(file.close)


def _link(target: Path, info: tarfile.TarInfo, destination: str) -> None:
    if info.issym():
        target.symlink_to(destination)
    elif Path(destination).is_symlink() or not Path(destination).is_file():
        raise OSError(0, "a hard link does not lead to a file of the directory", target.name)
    else:
        os.link(destination, target)


def _refused(info: tarfile.TarInfo, reason: str) -> FileSystemError:
    return FileSystemError(
        f"the download was refused: {info.name[:200]!r} {reason}",
        hint="the sandbox's files are not to be trusted; download single files by name instead",
    )
