"""One run of a file script: feeding it, reading it, and what its end means."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Self

import anyio

from sandboxio.adapter.driver import ProcessHandle, ProcessSpec
from sandboxio.errors import ConnectError, FileSystemError
from sandboxio.models import OutputChunk
from sandboxio_docker.file_errors import file_error
from sandboxio_docker.file_scripts import OF_TARGET
from sandboxio_docker.process import DockerProcesses

__all__ = ["ScriptRun"]

_REASON_LIMIT = 16 * 1024
_LINE_LIMIT = 4096
_FILE_TIMEOUT = 3600.0
_CUT_OFF_CODES = (126, 128, 137)
_KILL_SECONDS = 5.0


class ScriptRun:
    """A file script that has been started. Always `close` it."""

    def __init__(self, handle: ProcessHandle, paths: Sequence[str], disk_mb: int | None) -> None:
        self._handle = handle
        self._paths = tuple(paths)
        self._path = paths[0]
        self._disk_mb = disk_mb
        self._reason = bytearray()
        self._rest = b""
        self._finished = False

    @classmethod
    async def start(
        cls,
        processes: DockerProcesses,
        command: Sequence[str],
        paths: Sequence[str],
        disk_mb: int | None,
        *,
        feed: bool,
    ) -> Self:
        """Start `command`, which is about the first of `paths`, or about both."""
        spec = ProcessSpec(tuple(command), {"LC_ALL": "C"}, "/", feed, _FILE_TIMEOUT)
        return cls(await processes.start_own(spec), paths, disk_mb)

    async def line(self) -> str | None:
        """The first line of its output without the newline, or `None` when there is none."""
        head = b""
        while (piece := await self.piece()) is not None:
            head += piece
            line, newline, rest = head.partition(b"\n")
            if newline:
                self._rest = rest
                return line.decode("ascii", "replace")
            if len(head) > _LINE_LIMIT:
                raise FileSystemError(f"reading {self._path!r} gave something that is no file")
        return None

    async def piece(self) -> bytes | None:
        """Some of its output, or `None` at the end.

        Raises:
            FileSystemError: It has ended and failed.
        """
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        while (item := await self._handle.receive()) is not None:
            assert isinstance(item, OutputChunk)
            if item.stream == "stdout":
                return item.data
            self._note(item.data)
        await self.finish()
        return None

    async def collect(self, limit: int) -> bytes:
        """All of its output.

        Raises:
            FileSystemError: It failed, or its output is larger than `limit` bytes.
        """
        output = bytearray()
        while (piece := await self.piece()) is not None:
            output += piece
            if len(output) > limit:
                raise FileSystemError(
                    f"what there is to say about {self._path!r} is larger than {limit} bytes"
                )
        return bytes(output)

    async def feed(self, data: AsyncIterator[bytes]) -> None:
        """Write all of `data` to it, then end its input. What it does not want is dropped."""
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._drain_quietly)  # one that is busy complaining does not read
            try:
                await self._send(data)
            except Exception as exc:
                failure = exc
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _send(self, data: AsyncIterator[bytes]) -> None:
        try:
            async for piece in data:
                view = memoryview(piece)
                while view:
                    view = view[await self._handle.send(view) :]
            await self._handle.send_eof()
        except anyio.BrokenResourceError:
            return  # it has ended already, and says why

    async def _drain(self) -> None:
        while (item := await self._handle.receive()) is not None:
            assert isinstance(item, OutputChunk)
            if item.stream == "stderr":
                self._note(item.data)

    def _note(self, reason: bytes) -> None:
        self._reason += reason[: _REASON_LIMIT - len(self._reason)]

    async def _drain_quietly(self) -> None:
        with contextlib.suppress(Exception):  # what breaks here breaks again at the end, where it is told
            await self._drain()

    async def finish(self) -> None:
        """Wait for its end.

        Raises:
            FileSystemError: It failed.
        """
        if self._finished:
            return
        await self._drain()
        ended = await self._handle.wait()
        self._finished = True
        if ended.code is None or ended.code in _CUT_OFF_CODES:
            raise ConnectError(f"a file operation on {self._path!r} was cut off")
        if ended.code != 0:
            reason = self._reason.decode("utf-8", "replace")
            path = self._paths[-1] if ended.code in OF_TARGET else self._path
            raise file_error(path, OF_TARGET.get(ended.code, ended.code), reason, self._disk_mb)

    async def close(self) -> None:
        """End it if it still runs, and give its connection back."""
        with anyio.CancelScope(shield=True):
            try:
                if not self._finished:
                    with anyio.move_on_after(_KILL_SECONDS):
                        await self._handle.kill()
            finally:
                await self._handle.aclose()
