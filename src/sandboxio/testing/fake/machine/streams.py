"""What a virtual process reads from and writes to: pipes, devices and open files."""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from sandboxio.testing.fake.machine.tree import FileNode, FileTree

__all__ = [
    "PIPE_BYTES",
    "Channel",
    "FileChannel",
    "NullDevice",
    "Pipe",
    "PipeReader",
    "PipeWriter",
    "ZeroDevice",
]

PIPE_BYTES: Final = 64 * 1024
_ZEROS: Final = b"\0" * PIPE_BYTES


class Channel(Protocol):
    """One open description. It counts its holders, and closes with the last of them."""

    def open(self) -> None:
        """Have one holder more."""
        ...

    def close(self) -> None:
        """Have one holder less."""
        ...

    def read(self, size: int) -> bytes | None:
        """At most so many bytes; none at the end; `None` when it must be tried again later."""
        ...

    def write(self, data: memoryview) -> int:
        """Take some of the bytes, or 0 when it must be tried again later.

        Raises:
            BrokenPipeError: Nobody will ever read them.
            OSError: There is no room for them.
        """
        ...


class Pipe:
    """A bounded buffer between two ends."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self.readers = 0
        self.writers = 0
        self.discarding = False

    @property
    def empty(self) -> bool:
        """Whether nothing can be read now."""
        return not self._chunks

    @property
    def full(self) -> bool:
        """Whether nothing more can be written now."""
        return self._held >= PIPE_BYTES and not self.discarding

    @property
    def at_end(self) -> bool:
        """Whether nothing will be read any more."""
        return not self._chunks and self.writers == 0

    def read(self, size: int) -> bytes | None:
        """See `Channel.read`."""
        if not self._chunks:
            return b"" if self.writers == 0 else None
        chunk = self._chunks.popleft()
        if len(chunk) > size:
            self._chunks.appendleft(chunk[size:])
            chunk = chunk[:size]
        self._held -= len(chunk)
        return chunk

    def write(self, data: memoryview) -> int:
        """See `Channel.write`."""
        if self.discarding:
            return len(data)
        if self.readers == 0:
            raise BrokenPipeError("nobody reads this pipe")
        taken = bytes(data[: PIPE_BYTES - self._held])
        if taken:
            self._chunks.append(taken)
            self._held += len(taken)
        return len(taken)

    def discard(self) -> None:
        """Swallow what is written from now on."""
        self.discarding = True
        self._chunks.clear()
        self._held = 0


class PipeReader:
    """The end of a pipe that is read."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def open(self) -> None:
        """Have one holder more."""
        self._pipe.readers += 1

    def close(self) -> None:
        """Have one holder less."""
        self._pipe.readers -= 1

    def read(self, size: int) -> bytes | None:
        """See `Channel.read`."""
        return self._pipe.read(size)

    def write(self, data: memoryview) -> int:
        """Refuse."""
        raise OSError("this end of a pipe cannot be written to")


class PipeWriter:
    """The end of a pipe that is written to."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def open(self) -> None:
        """Have one holder more."""
        self._pipe.writers += 1

    def close(self) -> None:
        """Have one holder less."""
        self._pipe.writers -= 1

    def read(self, size: int) -> bytes | None:
        """Refuse."""
        raise OSError("this end of a pipe cannot be read")

    def write(self, data: memoryview) -> int:
        """See `Channel.write`."""
        return self._pipe.write(data)


class NullDevice:
    """`/dev/null`."""

    def open(self) -> None:
        """Nothing is counted."""

    def close(self) -> None:
        """Nothing is counted."""

    def read(self, size: int) -> bytes | None:
        """Always at the end."""
        return b""

    def write(self, data: memoryview) -> int:
        """Swallow everything."""
        return len(data)


class ZeroDevice(NullDevice):
    """`/dev/zero`."""

    def read(self, size: int) -> bytes | None:
        """Zeros without end."""
        return _ZEROS[:size] if size < PIPE_BYTES else _ZEROS


class FileChannel:
    """An open file of the tree."""

    def __init__(self, tree: FileTree, node: FileNode, *, append: bool) -> None:
        self._tree = tree
        self._node = node
        self._position = len(node.data) if append else 0

    def open(self) -> None:
        """Nothing is counted."""

    def close(self) -> None:
        """Nothing is counted."""

    def read(self, size: int) -> bytes | None:
        """The next bytes."""
        piece = bytes(self._node.data[self._position : self._position + size])
        self._position += len(piece)
        return piece

    def write(self, data: memoryview) -> int:
        """Write on, as far as there is room on the disk."""
        taken = self._tree.extend(self._node, self._position, data)
        self._position += taken
        return taken
