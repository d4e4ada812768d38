"""Where a path leads. E2B describes a link without following it, and takes `..` by name."""

from __future__ import annotations

import posixpath
from typing import Final

from e2b import EntryInfo, FileType
from e2b.exceptions import FileNotFoundException
from e2b_code_interpreter import AsyncSandbox

from sandboxio.errors import FileSystemError, PathNotFound

__all__ = ["followed", "located", "not_a_directory"]

_MOST_LINKS: Final = 40  # as many as Linux follows


async def followed(native: AsyncSandbox, path: str, *, request_timeout: float | None = None) -> EntryInfo:
    """What is at `path`, or where the link there leads.

    E2B tells where it leads in the end, and names the link itself if that is nowhere. Should it tell the
    link's own words, they are followed one by one.

    Raises:
        PathNotFound: It is a link that leads nowhere, or in a circle.
        Exception: Whatever the SDK makes of a refusal.
    """
    info = await native.files.get_info(path, request_timeout=request_timeout)
    try:
        for _ in range(_MOST_LINKS):
            if info.type is not FileType.SYMLINK:
                return info
            target = posixpath.join(posixpath.dirname(info.path), info.symlink_target or "")
            if not info.symlink_target or target == info.path:
                break
            info = await native.files.get_info(target, request_timeout=request_timeout)
    except FileNotFoundException as exc:
        raise _leads_nowhere(path) from exc
    raise _leads_nowhere(path)


async def located(native: AsyncSandbox, path: str) -> str:
    """The absolute `path` without `.` and `..`: behind a link, that is not the parent of the link's name.

    Raises:
        PathNotFound: What a `..` stands behind does not exist.
        FileSystemError: It is not a directory.
        Exception: Whatever the SDK makes of a refusal.
    """
    place = "/"
    for part in path.split("/"):
        if part == "..":
            info = await followed(native, place)
            if info.type is not FileType.DIR:
                raise not_a_directory(place)
            place = posixpath.dirname(info.path)
        elif part not in ("", "."):
            place = posixpath.join(place, part)
    return place


def not_a_directory(path: str) -> FileSystemError:
    """The error for something else where a directory has to be."""
    return FileSystemError(f"{path!r} is not a directory", hint="name a directory")


def _leads_nowhere(path: str) -> PathNotFound:
    return PathNotFound(f"{path!r} is a link that leads nowhere", hint="remove the link, or make its target")
