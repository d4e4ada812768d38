"""The synchronous streaming handle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sandboxio.models import ExecResult, OutputChunk

if TYPE_CHECKING:
    from sandboxio.protocols import Process
    from sandboxio.sync.loop import LoopThread

__all__ = ["SyncProcess"]


class SyncProcess:
    """A running process: `Process` without `await`. Errors are the same.

    One thread reads it at a time; `write`, `close_stdin` and `kill` may come from another.

    Example:
        with sb.stream(["make"]) as proc:
            for chunk in proc:
                sys.stdout.buffer.write(chunk.data)
        print(proc.returncode)
    """

    def __init__(self, process: Process, loop: LoopThread) -> None:
        self._process = process
        self._loop = loop

    def __repr__(self) -> str:
        return f"<SyncProcess of {self._process!r}>"

    @property
    def returncode(self) -> int | None:
        """The exit code, or `None` while it runs."""
        return self._process.returncode

    def wait(self) -> ExecResult:
        """Drain what is unread and return the result, with `streamed=True` and empty texts.

        Raises:
            ExecutionTimeout: The deadline passed; the process tree was ended.
            ResourceLimitExceeded: It was killed for want of memory.
            SandboxGone: The sandbox ended meanwhile.
        """
        return self._loop.call(self._process.wait)

    def kill(self) -> None:
        """End the whole process tree. Does nothing when it has ended."""
        self._loop.call(self._process.kill)

    def write(self, data: bytes | str) -> None:
        """Write to standard input; text as UTF-8. Waits while the process does not read.

        Raises:
            ConfigurationError: `stdin=PIPE` was not given, or the input was closed.
            ExecutionError: The process has ended or reads no more.
            SandboxGone: The sandbox ended meanwhile.
        """
        self._loop.call(partial(self._process.write, data))

    def close_stdin(self) -> None:
        """Let the process read end of file. Does nothing the second time."""
        self._loop.call(self._process.close_stdin)

    def __iter__(self) -> Iterator[OutputChunk]:
        return self

    def __next__(self) -> OutputChunk:
        chunk = self._loop.call(self._next)
        if chunk is None:
            raise StopIteration
        return chunk

    def __enter__(self) -> Self:
        self._loop.call(self._process.__aenter__)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._loop.call(partial(self._process.__aexit__, exc_type, exc, traceback))

    async def _next(self) -> OutputChunk | None:
        try:
            return await self._process.__anext__()
        except StopAsyncIteration:
            return None
