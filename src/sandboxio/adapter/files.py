"""The file-system handle: validation, records and streaming over a driver's file port."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from sandboxio.adapter.driver import FilePort
from sandboxio.adapter.extract import extract_tree
from sandboxio.adapter.guard import Guard
from sandboxio.adapter.local import (
    CHUNK_BYTES,
    local_path,
    new_file,
    new_folder,
    on_disk,
    pack_tree,
    read_file,
)
from sandboxio.adapter.operation import Operation, Recorder
from sandboxio.adapter.validation import absolute_path, checked_bound, checked_input
from sandboxio.errors import (
    ExecutionTimeout,
    FileSystemError,
    PathNotFound,
)
from sandboxio.models import Capability, FileInfo

__all__ = ["DOWNLOAD_LIMIT_BYTES", "READ_LIMIT_BYTES", "Files"]

READ_LIMIT_BYTES: Final = 2 * 1024**3
"""What `read` takes into memory at most: a sparse file of hostile code can claim any size."""

DOWNLOAD_LIMIT_BYTES: Final = 64 * 1024**3
"""What one download writes at most."""

_NEW_FILE_MODE: Final = 0o644


class Files:
    """An `AsyncFileSystem` over a driver's file port."""

    def __init__(self, guard: Guard, recorder: Recorder) -> None:
        self._guard = guard
        self._recorder = recorder

    def __repr__(self) -> str:
        return f"<Files of {self._guard.identity.backend}:{self._guard.identity.id[:12]}>"

    async def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """The whole content of a file; a larger one than `max_bytes` is refused, whatever it claims."""
        target, limit = self._path(path), checked_bound("max_bytes", max_bytes, READ_LIMIT_BYTES)
        async with self._operation("files.read", target) as (port, operation):
            content = io.BytesIO()  # gives its bytes away without another copy
            async with port.open_read(target) as stream:
                _require_size(target, stream.size or 0, limit)
                async for chunk in stream:
                    _require_size(target, content.tell() + len(chunk), limit)
                    content.write(chunk)
            operation.bytes_out = content.tell()
            return content.getvalue()

    async def write(self, path: str, data: bytes | str) -> None:
        """Create or replace a file; its parent must exist. Text is written as UTF-8."""
        target = self._path(path)
        content = checked_input(data)
        async with self._operation("files.write", target) as (port, operation):
            await port.write(target, _Slices(content), len(content), _NEW_FILE_MODE)
            operation.bytes_in = len(content)

    async def upload(self, local: str | os.PathLike[str], path: str) -> None:
        """Copy a local file or directory into the sandbox, as `path` itself. It streams."""
        self._guard.require(Capability.UPLOAD_DOWNLOAD)
        source, target = local_path(local), self._path(path)
        async with self._operation("files.upload", str(source), target) as (port, operation):
            status = await on_disk(source.stat)
            if stat.S_ISDIR(status.st_mode):
                await port.mkdir(target, parents=True)
                async with aclosing(pack_tree(source, port.owner)) as archive:
                    await port.write_tree(target, _Counted(archive, operation))
                return
            mode = stat.S_IMODE(status.st_mode) & 0o777
            async with aclosing(read_file(source, status.st_size)) as data:
                await port.write(target, _Counted(data, operation), status.st_size, mode)

    async def download(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copy a file or directory out, as `local` itself. It streams, and stays inside `local`."""
        self._guard.require(Capability.UPLOAD_DOWNLOAD)
        source, target = self._path(path), local_path(local)
        async with self._operation("files.download", source, str(target)) as (port, operation):
            info = await port.stat(source)
            if info.is_dir:
                await _download_tree(port, source, target, operation)
                return
            try:
                await _download_file(port, source, target, operation, executable=_is_executable(info))
            except FileSystemError:
                beyond = f"{source}/."  # what a link leads to, if that is a directory
                if not await _is_directory(port, beyond):
                    raise
                await _download_tree(port, beyond, target, operation)

    async def ls(self, path: str = ".") -> tuple[FileInfo, ...]:
        """The entries of a directory, sorted by name."""
        target = self._path(path)
        async with self._operation("files.ls", target) as (port, _):
            entries = await port.list(target)
        return tuple(sorted(entries, key=lambda entry: entry.name))

    async def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Make a directory; with `parents` also what is missing above, and an existing one is fine."""
        target = self._path(path)
        async with self._operation("files.mkdir", target) as (port, _):
            await port.mkdir(target, parents=parents)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or link; a directory only with `recursive`."""
        target = self._path(path)
        async with self._operation("files.remove", target) as (port, _):
            await port.remove(target, recursive=recursive)

    async def exists(self, path: str) -> bool:
        """Whether the path exists; a dangling link does."""
        target = self._path(path)
        async with self._operation("files.exists", target) as (port, _):
            try:
                await port.stat(target)
            except PathNotFound:
                return False
            return True

    async def stat(self, path: str) -> FileInfo:
        """What is known about one path."""
        target = self._path(path)
        async with self._operation("files.stat", target) as (port, _):
            return await port.stat(target)

    async def rename(self, source: str, target: str) -> None:
        """Move within the sandbox, replacing a file at `target`."""
        old, new = self._path(source), self._path(target)
        async with self._operation("files.rename", old, new) as (port, _):
            await port.rename(old, new)

    @asynccontextmanager
    async def _operation(self, event: str, *paths: str) -> AsyncGenerator[tuple[FilePort, Operation], None]:
        """The one path of every file operation, bounded by what remains of the lifetime."""
        port = self._guard.driver.files
        assert port is not None, "FILESYSTEM was declared without a file port"
        async with self._recorder.operation(event, argv=paths) as operation:
            bound = self._guard.lifetime.execution_timeout(None)
            with anyio.move_on_after(bound) as scope:
                async with self._guard.calls(event):
                    yield port, operation
            if scope.cancelled_caught:
                raise ExecutionTimeout(f"{event} did not end within {bound:g} s")

    def _path(self, path: str) -> str:
        return absolute_path("the path", path, self._guard.driver.home)


async def _download_tree(port: FilePort, source: str, target: Path, operation: Operation) -> None:
    async with new_folder(target) as folder, port.open_tree(source) as archive:
        operation.bytes_out = await extract_tree(aiter(archive), folder, max_bytes=DOWNLOAD_LIMIT_BYTES)


async def _download_file(
    port: FilePort, source: str, target: Path, operation: Operation, *, executable: bool
) -> None:
    async with new_file(target, executable=executable) as file, port.open_read(source) as stream:
        _require_size(source, stream.size or 0, DOWNLOAD_LIMIT_BYTES)
        async for chunk in _Gathered(aiter(stream)):
            await on_disk(file.write, chunk)
            operation.bytes_out += len(chunk)
            _require_size(source, operation.bytes_out, DOWNLOAD_LIMIT_BYTES)


async def _is_directory(port: FilePort, path: str) -> bool:
    try:
        return (await port.stat(path)).is_dir
    except (FileSystemError, PathNotFound):
        return False


def _is_executable(info: FileInfo) -> bool:
    return bool((info.mode or 0) & 0o111)


class _Slices:
    """Bytes in memory, as the chunks of a stream."""

    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        chunk, self._rest = bytes(self._rest[:CHUNK_BYTES]), self._rest[CHUNK_BYTES:]
        return chunk


class _Gathered:
    """Chunks put together, so that each call to a thread is worth its price."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        gathered = [await anext(self._chunks)]
        size = len(gathered[0])
        while size < CHUNK_BYTES and (chunk := await anext(self._chunks, None)) is not None:
            gathered.append(chunk)
            size += len(chunk)
        return b"".join(gathered)


class _Counted:
    """Chunks on their way into the sandbox, counted in the record."""

    def __init__(self, chunks: AsyncIterator[bytes], operation: Operation) -> None:
        self._chunks = chunks
        self._operation = operation

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._operation.bytes_in += len(chunk)
        return chunk


def _require_size(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise FileSystemError(
            f"{path!r} is larger than {limit} bytes",
            hint="a sparse file can claim any size; download it, or read parts of it with run()",
        )
