"""The file port of the fake: the kit's primitives over the tree in memory."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import anyio.lowlevel

from sandboxio.adapter.driver import ReadStream, TreeStream
from sandboxio.models import FileInfo
from sandboxio.testing.fake.machine.tree import FifoNode, FileNode, FolderNode, LinkNode, Node
from sandboxio.testing.fake.provider import Provider, translate
from sandboxio.testing.fake.sandbox import VirtualSandbox
from sandboxio.testing.fake.scripted import FakeCall

__all__ = ["FakeFilePort"]

_CHUNK: Final = 256 * 1024
_OWNER: Final = 1000


class _Chunks:
    """Bytes in memory, as a stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.size: int | None = len(data)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        piece = self._data[self._position : self._position + _CHUNK]
        if not piece:
            raise StopAsyncIteration
        self._position += len(piece)
        return piece


class FakeFilePort:
    """Files. See `sandboxio.adapter.driver.FilePort`."""

    owner = (_OWNER, _OWNER)

    def __init__(self, provider: Provider, sandbox: VirtualSandbox) -> None:
        self._provider = provider
        self._sandbox = sandbox
        self._tree = sandbox.tree

    @asynccontextmanager
    async def open_read(self, path: str) -> AsyncGenerator[ReadStream, None]:
        """Read one regular file."""
        await self._call(path)
        with _refusals():
            data = bytes(self._tree.file(path).data)
        yield _Chunks(data)

    async def write(self, path: str, data: AsyncIterator[bytes], size: int, mode: int) -> None:
        """Create or replace a file."""
        await self._call(path)
        with _refusals():
            content = b"".join([piece async for piece in data])
            self._tree.replace(path, content, mode)

    @asynccontextmanager
    async def open_tree(self, path: str) -> AsyncGenerator[TreeStream, None]:
        """Read a directory as an archive."""
        await self._call(path)
        with _refusals():
            data = self._sandbox.archives.get(posixpath.normpath(path)) or self._pack(path)
        yield _Chunks(data)

    async def write_tree(self, path: str, archive: AsyncIterator[bytes]) -> None:
        """Unpack an archive of the kit."""
        await self._call(path)
        data = b"".join([piece async for piece in archive])
        with _refusals(), tarfile.open(fileobj=io.BytesIO(data)) as members:
            for info in members:
                target = posixpath.join(path, info.name)
                if info.isdir():
                    self._tree.make_folder(target, parents=True, mode=info.mode)
                elif info.issym():
                    self._tree.make_node(target, LinkNode(info.linkname))
                else:
                    content = members.extractfile(info)
                    assert content is not None
                    self._tree.replace(target, content.read(), info.mode)

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """The entries of a directory."""
        await self._call(path)
        with _refusals():
            entries = self._tree.folder(path).entries
            return tuple(_info(posixpath.join(path, name), node) for name, node in entries.items())

    async def stat(self, path: str) -> FileInfo:
        """One path."""
        await self._call(path)
        with _refusals():
            return _info(path, self._tree.find(path, follow=False))

    async def mkdir(self, path: str, *, parents: bool) -> None:
        """Make a directory."""
        await self._call(path)
        with _refusals():
            self._tree.make_folder(path, parents=parents)

    async def remove(self, path: str, *, recursive: bool) -> None:
        """Remove a file, a link or a tree."""
        await self._call(path)
        with _refusals():
            self._tree.remove(path, recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        """Move."""
        await self._call(source)
        with _refusals():
            self._tree.rename(source, target)

    async def _call(self, path: str) -> None:
        await anyio.lowlevel.checkpoint()
        self._provider.calls.append(FakeCall("files", self._sandbox.id, self._sandbox.policy, path=path))
        self._provider.require_running(self._sandbox)

    def _pack(self, path: str) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            root = posixpath.basename(posixpath.normpath(path)) or "root"
            _add(archive, root, self._tree.folder(path))
            for name, node in self._tree.below(path):
                _add(archive, f"{root}/{name}", node)
        return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, node: Node) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.uid, info.gid = node.mode, int(node.mtime), _OWNER, _OWNER
    if isinstance(node, FileNode):
        info.size = len(node.data)
        archive.addfile(info, io.BytesIO(node.data))
        return
    if isinstance(node, FolderNode):
        info.type = tarfile.DIRTYPE
    elif isinstance(node, FifoNode):
        info.type = tarfile.FIFOTYPE
    else:
        info.type, info.linkname = tarfile.SYMTYPE, node.target
    archive.addfile(info)


def _info(path: str, node: Node) -> FileInfo:
    path = posixpath.normpath(path)
    size = len(node.data) if isinstance(node, FileNode) else 0
    name = posixpath.basename(path)
    return FileInfo(path, name, isinstance(node, FolderNode), size, node.mode, node.mtime)


@contextmanager
def _refusals() -> Generator[None, None, None]:
    """Turn what the tree refuses into errors of the library."""
    try:
        yield
    except OSError as exc:
        error = translate(exc)
        assert error is not None
        raise error from exc
