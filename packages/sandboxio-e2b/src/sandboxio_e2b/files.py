"""Files over the SDK's own interface, which is looser than ours.

It makes missing parents, removes what is not there and whole trees unasked, and follows no link. So
what must not be is looked for first, and a new content is put in its place by a rename. A whole
directory goes through a tar archive in a file of the sandbox, since output is no way for it.
"""

from __future__ import annotations

import contextlib
import posixpath
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from e2b import EntryInfo, FileType
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import ReadStream, TreeStream
from sandboxio.errors import FileSystemError, PathNotFound
from sandboxio.models import FileInfo
from sandboxio.release import bounded
from sandboxio_e2b.file_errors import explained, is_a_directory
from sandboxio_e2b.listing import LISTING_LIMIT_BYTES, find_command, read_listing
from sandboxio_e2b.places import followed, located, not_a_directory
from sandboxio_e2b.process import E2BProcesses
from sandboxio_e2b.tool import run_tool

__all__ = ["E2BFiles"]

_DEFAULT_MODE: Final = 0o644
_LINK_MODE: Final = 0o777  # Linux knows no other
_TEMPORARY: Final = "/tmp"  # noqa: S108 -- in the sandbox, under a name that cannot be guessed
_CLEANUP_SECONDS: Final = 5.0


class _Content:
    """A file's content."""

    size = None

    def __init__(self, reader: AsyncIterator[bytes]) -> None:
        self._reader = reader

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._reader


class _Exactly:
    """The chunks of an upload, which must be as many bytes as were announced."""

    def __init__(self, data: AsyncIterator[bytes], size: int) -> None:
        self._data = data
        self._left = size

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._data, None)
        self._left -= len(chunk or b"")
        if self._left < 0 or (chunk is None and self._left):
            raise FileSystemError("the data has another size than announced", hint="write it again")
        if chunk is None:
            raise StopAsyncIteration
        return chunk


class E2BFiles:
    """The file port of a microVM.

    Args:
        native: The SDK's sandbox.
        processes: How find, tar and chmod are run in it.
        owner: The uid and gid of what is written.
    """

    def __init__(self, native: AsyncSandbox, processes: E2BProcesses, owner: tuple[int, int]) -> None:
        self._native = native
        self._files = native.files
        self._processes = processes
        self._owner = owner

    @property
    def owner(self) -> tuple[int, int]:
        """The uid and gid of what is written."""
        return self._owner

    @asynccontextmanager
    async def open_read(self, path: str) -> AsyncGenerator[ReadStream]:
        """See `FilePort.open_read`."""
        path = await self._located(path)
        with explained(path):
            reader = await self._files.read(path, format="stream", stream_idle_timeout=0)
        async with reader:
            yield _Content(reader)

    async def write(self, path: str, data: AsyncIterator[bytes], size: int, mode: int) -> None:
        """See `FilePort.write`. A link at `path` is replaced, not followed."""
        path = await self._located(path)
        await self._require_directory(posixpath.dirname(path))
        if await self._is_directory(path):
            raise is_a_directory(path)
        part = posixpath.join(posixpath.dirname(path), f".{secrets.token_hex(12)}.part")
        async with self._removed_on_failure(part):
            with explained(path):
                await self._upload(part, _Exactly(data, size))
                if mode != _DEFAULT_MODE:
                    await self._tool(path, "chmod", f"{mode:o}", "--", part)
                await self._files.rename(part, path)

    @asynccontextmanager
    async def open_tree(self, path: str) -> AsyncGenerator[TreeStream]:
        """See `FilePort.open_tree`."""
        path = await self._located(path)
        await self._require_directory(path)
        archive = f"{_TEMPORARY}/.{secrets.token_hex(12)}.tar"
        async with self._removed(archive):
            await self._tool(path, "tar", "-C", path, "-cf", archive, ".")
            async with self.open_read(archive) as stream:
                yield stream

    async def write_tree(self, path: str, archive: AsyncIterator[bytes]) -> None:
        """See `FilePort.write_tree`."""
        path = await self._located(path)
        await self._require_directory(path)
        name = f"{_TEMPORARY}/.{secrets.token_hex(12)}.tar"
        async with self._removed(name):
            with explained(path):
                await self._upload(name, archive)
            await self._tool(path, "tar", "-C", path, "-xpof", name)

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """See `FilePort.list`."""
        path = await self._located(path)
        command = find_command(path)
        output = await run_tool(self._processes, path, command, output_limit=LISTING_LIMIT_BYTES)
        return read_listing(path, output)

    async def stat(self, path: str) -> FileInfo:
        """See `FilePort.stat`. A path that ends with `/` or `/.` means what a link leads to."""
        place = await self._located(path)
        look = self._followed if path.endswith(("/", "/.")) else self._info
        return _file_info(await look(place), place)

    async def mkdir(self, path: str, *, parents: bool) -> None:
        """See `FilePort.mkdir`."""
        path = await self._located(path)
        if not parents:
            await self._require_directory(posixpath.dirname(path))
        with explained(path):
            made = await self._files.make_dir(path)
        if not made and not (parents and await self._is_directory(path)):
            raise FileSystemError(
                f"{path!r} exists already", hint="remove it first, or use mkdir(parents=True)"
            )

    async def remove(self, path: str, *, recursive: bool) -> None:
        """See `FilePort.remove`."""
        path = await self._located(path)
        info = await self._info(path)
        if info.type is FileType.DIR and not recursive:
            raise is_a_directory(path)
        with explained(path):
            await self._files.remove(path)

    async def rename(self, source: str, target: str) -> None:
        """See `FilePort.rename`."""
        source, target = await self._located(source), await self._located(target)
        await self._info(source)
        await self._require_directory(posixpath.dirname(target))
        if await self._is_directory(target):
            raise is_a_directory(target)
        with explained(source):
            await self._files.rename(source, target)

    async def _located(self, path: str) -> str:
        with explained(path):
            return await located(self._native, path)

    async def _info(self, path: str) -> EntryInfo:
        with explained(path):
            return await self._files.get_info(path)

    async def _followed(self, path: str) -> EntryInfo:
        with explained(path):
            return await followed(self._native, path)

    async def _is_directory(self, path: str) -> bool:
        """Whether it is one, or a link to one."""
        try:
            return (await self._followed(path)).type is FileType.DIR
        except PathNotFound:
            return False

    async def _require_directory(self, path: str) -> None:
        """It must be one, or a link to one."""
        if (await self._followed(path)).type is not FileType.DIR:
            raise not_a_directory(path)

    async def _upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        await self._files.write(path, data)  # pyright: ignore[reportUnknownMemberType] -- the SDK's IO

    async def _tool(self, path: str, *command: str) -> None:
        await run_tool(self._processes, path, command)

    @asynccontextmanager
    async def _removed_on_failure(self, path: str) -> AsyncGenerator[None]:
        """Leave nothing at `path` unless the block ends well."""
        try:
            yield
        except BaseException:
            await self._discard(path)
            raise

    @asynccontextmanager
    async def _removed(self, path: str) -> AsyncGenerator[None]:
        """Leave nothing at `path`."""
        try:
            yield
        finally:
            await self._discard(path)

    async def _discard(self, path: str) -> None:
        with contextlib.suppress(Exception):
            await bounded(lambda: self._files.remove(path), grace=_CLEANUP_SECONDS)


def _file_info(info: EntryInfo, path: str) -> FileInfo:
    """A link is described as itself. Only its mode is told as the target's, so that is put right."""
    return FileInfo(
        path=path,
        name=posixpath.basename(path),
        is_dir=info.type is FileType.DIR,
        size=info.size,
        mode=_LINK_MODE if info.type is FileType.SYMLINK else info.mode & 0o7777,
        mtime=info.modified_time.timestamp(),
    )
