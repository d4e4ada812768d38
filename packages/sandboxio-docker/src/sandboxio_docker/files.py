"""Files, through executions: with the rights, the view and the limits of the code in the sandbox.

The engine's archive API is used for one thing: the content of a large file on its way in, which it
takes twice as fast, goes to the working folder's own top, which is a mount point and so cannot be a
link, and is put in its place by an execution. For all else it will not do. It works as root, past a
read-only root file system where a link leads out of a volume, does not see `/dev/shm` or `/proc`,
and holds the container's lock while a transfer lasts, so that a reader who pauses would stop every
other call. That is also why it takes no more than 1 GiB, and nothing over a network: the end of an
execution that is due meanwhile has to wait for it.
"""

from __future__ import annotations

import posixpath
import re
import secrets
import stat
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

import anyio
import anyio.lowlevel
import h11

from sandboxio.adapter.driver import ReadStream, TreeStream
from sandboxio.adapter.tar import END, file_header, padding
from sandboxio.models import FileInfo
from sandboxio_docker import file_scripts as scripts
from sandboxio_docker.container import Container
from sandboxio_docker.errors import EngineError
from sandboxio_docker.file_errors import file_error
from sandboxio_docker.file_script_run import ScriptRun
from sandboxio_docker.hardening import HOME
from sandboxio_docker.process import DockerProcesses
from sandboxio_docker.user import User

__all__ = ["DockerFiles"]

_LISTING_LIMIT: Final = 64 * 1024 * 1024
_BULK_BYTES: Final = range(16 * 1024 * 1024, 1024 * 1024 * 1024 + 1)
_CLEANUP_SECONDS: Final = 5.0
_RECORD: Final = re.compile(rb"([0-9a-f]{1,8}) (\d{1,20}|-) (-?\d{1,20}|-) ")


class _Sized:
    """A file's content."""

    def __init__(self, run: ScriptRun, size: int | None) -> None:
        self._run = run
        self.size = size

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._run.piece()
        if piece is None:
            raise StopAsyncIteration
        return piece


class DockerFiles:
    """The file port of a container that has a shell.

    Args:
        processes: How commands are started in it.
        user: Who owns what is written.
        disk_mb: The cap on disk, for messages.
        bulk: The container, where the archive API may be used for large files.
    """

    def __init__(
        self, processes: DockerProcesses, user: User, disk_mb: int | None, bulk: Container | None = None
    ) -> None:
        self._processes = processes
        self._user = user
        self._disk_mb = disk_mb
        self._bulk = bulk

    @property
    def owner(self) -> tuple[int, int]:
        """The uid and gid of what is written."""
        return self._user.uid, self._user.gid

    @asynccontextmanager
    async def open_read(self, path: str) -> AsyncGenerator[ReadStream]:
        """See `FilePort.open_read`."""
        async with self._run(scripts.READ, path) as run:
            line = await run.line() or ""
            yield _Sized(run, int(line) or None if line.isdigit() else None)

    async def write(self, path: str, data: AsyncIterator[bytes], size: int, mode: int) -> None:
        """See `FilePort.write`. A link at `path` is replaced, not followed."""
        if self._bulk is not None and size in _BULK_BYTES and path.startswith(f"{HOME}/"):
            await self._write_large(self._bulk, path, data, size, mode)
            return
        beside = posixpath.join(posixpath.dirname(path), f".{secrets.token_hex(12)}.part")
        umask = f"{~mode & 0o777:03o}"
        extra = f"{mode:o}" if mode & ~0o666 else ""
        try:
            async with self._run(
                scripts.WRITE, path, beside, umask, str(size), extra, paths=2, feed=True
            ) as run:
                await run.feed(data)
                await run.finish()
        except BaseException:
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                await self._try(scripts.REMOVE, beside)
            raise

    async def _write_large(
        self, container: Container, path: str, data: AsyncIterator[bytes], size: int, mode: int
    ) -> None:
        name = f".{secrets.token_hex(12)}.part"
        part = f"{HOME}/{name}"
        head = file_header(name, size, mode, *self.owner, int(time.time()))
        tail = padding(size) + END
        try:
            try:
                async with aclosing(_joined(head, data, tail)) as archive:
                    total = len(head) + size + len(tail)
                    await container.put_archive(HOME, archive, total)
            except EngineError as exc:
                raise file_error(path, None, exc.message, self._disk_mb) from exc
            except h11.LocalProtocolError as exc:
                raise file_error(path, scripts.SHORT, "", self._disk_mb) from exc
            await self._output(scripts.PLACE, path, part, paths=2)
        except BaseException:
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                await self._try(scripts.REMOVE, part)
            raise

    @asynccontextmanager
    async def open_tree(self, path: str) -> AsyncGenerator[TreeStream]:
        """See `FilePort.open_tree`."""
        async with self._run(scripts.READ_TREE, path) as run:
            await run.line()
            yield _Sized(run, None)

    async def write_tree(self, path: str, archive: AsyncIterator[bytes]) -> None:
        """See `FilePort.write_tree`."""
        async with self._run(scripts.WRITE_TREE, path, feed=True) as run:
            await run.feed(archive)
            await run.finish()

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """See `FilePort.list`."""
        output = await self._output(scripts.LIST, path)
        found: list[FileInfo] = []
        fields = output.split(b"\0")
        names: list[bytes] = []
        position = 0
        while position < len(fields) - 1:
            if fields[position]:
                names.append(fields[position].removeprefix(b"./"))
                position += 1
            else:
                found += _described(_tidy(path), names, fields[position + 1])
                names = []
                position += 2
                await anyio.lowlevel.checkpoint()  # hostile code chooses how many there are
        return tuple(found)

    async def stat(self, path: str) -> FileInfo:
        """See `FilePort.stat`."""
        output = await self._output(scripts.STAT, path)
        record = _RECORD.match(output)
        if record is None:
            raise file_error(path, 1, "its description cannot be read", self._disk_mb)
        return _info(_tidy(path), record)

    async def mkdir(self, path: str, *, parents: bool) -> None:
        """See `FilePort.mkdir`."""
        await self._output(scripts.MKDIR_PARENTS if parents else scripts.MKDIR, path)

    async def remove(self, path: str, *, recursive: bool) -> None:
        """See `FilePort.remove`."""
        await self._output(scripts.REMOVE_TREE if recursive else scripts.REMOVE, path)

    async def rename(self, source: str, target: str) -> None:
        """See `FilePort.rename`."""
        await self._output(scripts.RENAME, source, target, paths=2)

    async def _output(self, script: str, *arguments: str, paths: int = 1) -> bytes:
        async with self._run(script, *arguments, paths=paths) as run:
            output = await run.collect(_LISTING_LIMIT)
            await run.finish()
            return output

    async def _try(self, script: str, path: str) -> None:
        try:
            await self._output(script, path)
        except Exception:
            return

    @asynccontextmanager
    async def _run(
        self, script: str, *arguments: str, paths: int = 1, feed: bool = False
    ) -> AsyncGenerator[ScriptRun]:
        command = _command(script, arguments, paths)
        run = await ScriptRun.start(self._processes, command, arguments[:paths], self._disk_mb, feed=feed)
        try:
            yield run
        finally:
            await run.close()


async def _joined(head: bytes, data: AsyncIterator[bytes], tail: bytes) -> AsyncGenerator[bytes, None]:
    yield head
    async for piece in data:
        yield piece
    yield tail


def _command(script: str, arguments: Sequence[str], paths: int) -> tuple[str, ...]:
    """JSON cannot carry bytes that are no UTF-8, so paths with such bytes travel as escapes."""
    raw = [argument.encode("utf-8", "surrogateescape") for argument in arguments]
    try:
        for argument in raw:
            argument.decode()
    except UnicodeDecodeError:
        escaped = ["".join(f"\\0{byte:03o}" for byte in argument) for argument in raw[:paths]]
        return ("/bin/sh", "-c", scripts.decoding(script, paths), "sh", *escaped, *arguments[paths:])
    return ("/bin/sh", "-c", script, "sh", *arguments)


def _described(folder: str, names: Sequence[bytes], text: bytes) -> Iterator[FileInfo]:
    """The entries that still existed when they were described."""
    position = 0
    for name in names:
        record = _RECORD.match(text, position)
        end = record.end() if record else position
        if record is None or not text.startswith(b"./" + name + b"\n", end):
            continue
        position = end + len(name) + 3
        yield _info(posixpath.join(folder, name.decode("utf-8", "surrogateescape")), record)


def _info(path: str, record: re.Match[bytes]) -> FileInfo:
    name, mode = posixpath.basename(path), int(record[1], 16)
    if record[2] == b"-":
        return FileInfo(path, name, is_dir=stat.S_ISDIR(mode))
    return FileInfo(
        path,
        name,
        is_dir=stat.S_ISDIR(mode),
        size=int(record[2]),
        mode=stat.S_IMODE(mode),
        mtime=float(record[3]),
    )


def _tidy(path: str) -> str:
    """The path without `.` and doubled slashes; `..` stays, since only the sandbox knows its links."""
    if ".." in path.split("/"):
        return path
    return "/" + posixpath.normpath(path).lstrip("/")
