"""A directory as `find` tells it.

The SDK's own listing has no bound, leaves out what is neither a file nor a directory, a link that
leads nowhere among it, and fails as a whole for one name that is no UTF-8.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

from sandboxio.errors import FileSystemError
from sandboxio.models import FileInfo

__all__ = ["LISTING_LIMIT_BYTES", "find_command", "read_listing"]

LISTING_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""What a listing may take; some hundred thousand entries."""

_RECORD: Final = re.compile(rb"([a-zA-Z?]) ([0-7]{1,4}) (\d{1,20}) (-?\d{1,20}\.\d{1,6})\d* ([^/]+)")


def find_command(path: str) -> tuple[str, ...]:
    """The command that writes one record for each entry of `path`, or of where a link there leads.

    Example: `find_command("/home/user")[:2]` is `("find", "/home/user/.")`.
    """
    records = r"%y %m %s %T@ %f\0"
    depth = ("-mindepth", "1", "-maxdepth", "1")
    return ("find", posixpath.join(path, "."), "-ignore_readdir_race", *depth, "-printf", records)


def read_listing(path: str, output: bytes) -> tuple[FileInfo, ...]:
    """The entries of `path`, from what the command wrote. Times are as exact as E2B's own.

    Raises:
        FileSystemError: It wrote something else.
    """
    *records, rest = output.split(b"\0")
    if rest:
        raise _unreadable(path)
    return tuple(_entry(path, record) for record in records)


def _entry(folder: str, text: bytes) -> FileInfo:
    record = _RECORD.fullmatch(text)
    if record is None:
        raise _unreadable(folder)
    name = record[5].decode("utf-8", "surrogateescape")
    return FileInfo(
        path=posixpath.join(folder, name),
        name=name,
        is_dir=record[1] == b"d",
        size=int(record[3]),
        mode=int(record[2], 8),
        mtime=float(record[4]),
    )


def _unreadable(path: str) -> FileSystemError:
    return FileSystemError(
        f"the listing of {path!r} cannot be read", hint="use a template with the `find` of GNU findutils"
    )
