"""Tar archives as streams: writing headers, and reading what hostile code may have made.

`tarfile` encodes and decodes single headers; the streaming around them is here, since its own is
blocking. Nothing is ever held in memory beyond one chunk and one bounded extended header.
"""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from sandboxio.errors import FileSystemError

__all__ = ["END", "Member", "file_header", "header", "padding", "read_members"]

_BLOCK: Final = tarfile.BLOCKSIZE
_EXTENDED_LIMIT: Final = 1024 * 1024
_PAX_TYPES: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_GNU_TYPES: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_EXTENDED_TYPES: Final = (*_PAX_TYPES, *_GNU_TYPES)
_ENCODING: Final = "utf-8"
_ERRORS: Final = "surrogateescape"

END: Final = b"\0" * (2 * _BLOCK)
"""What closes an archive."""


@dataclass(slots=True)
class Member:
    """One member while it is being read.

    Attributes:
        info: Its header, with long names and sizes resolved.
        data: Its content in pieces; what is left unread is skipped.
    """

    info: tarfile.TarInfo
    data: AsyncIterator[bytes]


def header(info: tarfile.TarInfo) -> bytes:
    """The header blocks of a member."""
    return info.tobuf(tarfile.GNU_FORMAT, _ENCODING, _ERRORS)


def file_header(name: str, size: int, mode: int, uid: int, gid: int, mtime: int = 0) -> bytes:
    """The header blocks of a regular file, sizes in bytes."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.uid, info.gid, info.mtime = size, mode, uid, gid, mtime
    return header(info)


def padding(size: int) -> bytes:
    """What follows `size` bytes of content up to the next block."""
    return b"\0" * (-size % _BLOCK)


def read_members(chunks: AsyncIterator[bytes]) -> AsyncIterator[Member]:
    """The members of an archive, in order. Use each before asking for the next.

    Raises:
        FileSystemError: The bytes are no tar archive, end early, or hold a sparse file.
    """
    return _Members(chunks)


class _Members:
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._source = _Source(chunks)
        self._content = _Content(self._source, 0)

    def __aiter__(self) -> AsyncIterator[Member]:
        return self

    async def __anext__(self) -> Member:
        await self._content.skip()
        overrides: dict[str, str] = {}
        extended_bytes = 0
        while True:
            block = await self._source.exactly(_BLOCK, at_end=b"")
            if block.count(0) == len(block):
                raise StopAsyncIteration
            info = _parse(block)
            if info.type in _EXTENDED_TYPES:
                extended_bytes += info.size
                if extended_bytes > _EXTENDED_LIMIT:
                    raise _malformed("the names and headers of one member are longer than 1 MiB")
            if info.type in _PAX_TYPES:
                records = _pax_records(await self._source.extended(info.size))
                if info.type != tarfile.XGLTYPE:
                    overrides.update(records)
            elif info.type in _GNU_TYPES:
                key = "path" if info.type == tarfile.GNUTYPE_LONGNAME else "linkpath"
                name = await self._source.extended(info.size)
                overrides[key] = _decode(name.partition(b"\0")[0])
            else:
                break
        _apply(info, overrides)
        self._content = _Content(self._source, info.size if info.isreg() else 0)
        return Member(info, self._content)


class _Content:
    """The content of one member."""

    def __init__(self, source: _Source, size: int) -> None:
        self._source = source
        self._left = size
        self._padding = len(padding(size))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        piece = await self._source.at_most(self._left)
        self._left -= len(piece)
        return piece

    async def skip(self) -> None:
        while self._left:
            self._left -= len(await self._source.at_most(self._left))
        await self._source.exactly(self._padding)
        self._padding = 0


class _Source:
    """Pulls exact amounts out of chunks of any size."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    async def _fill(self) -> bool:
        while not self._rest:
            try:
                self._rest = memoryview(await anext(self._chunks))
            except StopAsyncIteration:
                return False
        return True

    async def exactly(self, size: int, *, at_end: bytes | None = None) -> bytes:
        parts: list[memoryview] = []
        wanted = size
        while wanted:
            if not await self._fill():
                if at_end is not None and not parts:
                    return at_end
                raise _malformed("it ends early")
            parts.append(self._rest[:wanted])
            self._rest = self._rest[wanted:]
            wanted -= len(parts[-1])
        return b"".join(parts)

    async def extended(self, size: int) -> bytes:
        if not 0 <= size <= _EXTENDED_LIMIT:
            raise _malformed("a name or header in it is longer than 1 MiB")
        data = await self.exactly(size)
        await self.exactly(len(padding(size)))
        return data

    async def at_most(self, size: int) -> bytes:
        if not await self._fill():
            raise _malformed("it ends early")
        piece = self._rest[:size]
        self._rest = self._rest[size:]
        return bytes(piece)


def _parse(block: bytes) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(block, _ENCODING, _ERRORS)
    except (tarfile.TarError, ValueError, OverflowError) as exc:
        raise _malformed("a header in it cannot be read") from exc
    if info.size < 0 or info.type == tarfile.GNUTYPE_SPARSE:
        raise _malformed("it holds a negative size or a sparse file")
    return info


def _pax_records(data: bytes) -> dict[str, str]:
    """Records of the form `LENGTH KEY=VALUE`, each ended by a newline."""
    records: dict[str, str] = {}
    position = 0
    while position < len(data) and data[position]:
        digits, space, _ = data[position : position + 20].partition(b" ")
        if not space or not digits.isdigit():
            raise _malformed("an extended header in it cannot be read")
        end = position + int(digits)
        record = data[position + len(digits) + 1 : end]
        key, equals, value = record.removesuffix(b"\n").partition(b"=")
        if end > len(data) or not record.endswith(b"\n") or not equals:
            raise _malformed("an extended header in it cannot be read")
        records[_decode(key)] = _decode(value)
        position = end
    return records


def _apply(info: tarfile.TarInfo, overrides: dict[str, str]) -> None:
    if any(key.startswith("GNU.sparse.") for key in overrides):
        raise _malformed("it holds a sparse file")
    info.name = overrides.get("path", info.name)
    info.linkname = overrides.get("linkpath", info.linkname)
    if "size" in overrides:
        text = overrides["size"]
        if not (text.isascii() and text.isdecimal()) or len(text) > 19:
            raise _malformed("a size in it cannot be read")
        info.size = int(text)


def _decode(data: bytes) -> str:
    return data.decode(_ENCODING, _ERRORS)


def _malformed(reason: str) -> FileSystemError:
    return FileSystemError(
        f"the archive that the sandbox sent is not usable: {reason}",
        hint="download single files, or pack them inside the sandbox and download the package",
    )
