"""A started command: its output, its input, its end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.lowlevel

from sandboxio.adapter.driver import Exit
from sandboxio.errors import SandboxGone
from sandboxio.models import OutputChunk
from sandboxio_docker.container import Attachment, Container, gone
from sandboxio_docker.errors import EngineError
from sandboxio_docker.multiplex import FrameReader
from sandboxio_docker.oom import OomSince

__all__ = ["DockerProcess", "FinishedProcess", "Status", "read_status"]

_STATUS_LIMIT: Final = 4096
_READY: Final = "ready "
_KEPT_BYTES: Final = 16 * 1024 * 1024
_LOCK_PAUSE: Final = 0.01
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.25
_SIGKILL_CODE: Final = 137
_DEATH_CODES: Final = (128, _SIGKILL_CODE)
"""What executions report when their container dies: 137 of runc, 128 of gVisor."""


@dataclass(frozen=True, slots=True)
class Status:
    """The first line of a wrapped command.

    Attributes:
        text: The line, or all that came when there was no line.
        behind: Output of the command itself that arrived with it.
    """

    text: str
    behind: Sequence[OutputChunk] = ()

    @property
    def leader(self) -> str | None:
        """The leader's process id in the container, or `None` when nothing was started."""
        return self.text.removeprefix(_READY) if self.text.startswith(_READY) else None


async def read_status(frames: FrameReader) -> Status:
    """Read the line with which a wrapped command begins."""
    line = b""
    others: list[OutputChunk] = []
    size = 0
    while len(line) < _STATUS_LIMIT and size < _KEPT_BYTES:  # other processes can write here as well
        chunk = await frames.receive()
        if chunk is None:
            break
        size += len(chunk.data)
        if chunk.stream == "stderr":
            others.append(chunk)
            continue
        head, newline, rest = chunk.data.partition(b"\n")
        line += head
        if newline:
            behind = [*others, OutputChunk("stdout", rest)] if rest else others
            return Status(line.decode("utf-8", "replace").strip(), behind)
    text = line + b"".join(chunk.data for chunk in others)
    return Status(text.decode("utf-8", "replace").strip())


class DockerProcess:
    """A `ProcessHandle` over an execution of the engine.

    Args:
        container: Where it runs.
        exec_id: The engine's name for it.
        attachment: Its streams.
        oom: Kills for want of memory since it started.
        kill: What ends its tree.
        on_close: Called when its connection is given back.
        read_already: Output that was read before the handle existed.
    """

    def __init__(
        self,
        container: Container,
        exec_id: str,
        attachment: Attachment,
        oom: OomSince,
        *,
        kill: Callable[[], Awaitable[None]],
        on_close: Callable[[], None],
        read_already: Sequence[OutputChunk] = (),
    ) -> None:
        self._container = container
        self._exec_id = exec_id
        self._attachment = attachment
        self._oom = oom
        self._kill = kill
        self._on_close = on_close
        self._pending = list(read_already)
        self._reading = threading.Lock()
        self._exit: Exit | None = None
        self._fed = False

    async def receive(self) -> OutputChunk | None:
        """See `Execution.receive`."""
        while not self._reading.acquire(blocking=False):  # noqa: ASYNC110 -- `kill` may hold it in another loop
            await anyio.sleep(_LOCK_PAUSE)
        try:
            if self._pending:
                await anyio.lowlevel.checkpoint()
                return self._pending.pop(0)
            return await self._attachment.frames.receive()
        except ConnectionResetError:
            if not self._fed:
                raise
            return None  # it ended without reading its input; all that it wrote has come before this
        finally:
            self._reading.release()

    async def poll(self) -> Exit | None:
        """See `Execution.poll`.

        Raises:
            SandboxGone: The container ended with the execution.
        """
        if self._exit is None:
            self._exit = await self._ask()
        return self._exit

    async def wait(self) -> Exit:
        """See `Execution.wait`. The leader may outlive its output, so the engine is asked again."""
        pause = _FIRST_PAUSE
        while (ended := await self.poll()) is None:
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return ended

    async def kill(self) -> None:
        """See `Execution.kill`.

        The engine tells of no end in this container before the output of what has ended is taken
        from it. So output that nobody reads is read here, and kept for the one who may ask for it.
        """
        if not self._reading.acquire(blocking=False):
            await self._kill()
            return
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_output)
                try:
                    await self._kill()
                except Exception as exc:
                    failure = exc
                group.cancel_scope.cancel()
        finally:
            self._reading.release()
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """See `Execution.aclose`."""
        self._on_close()
        self._attachment.stream.close()

    async def send(self, data: memoryview) -> int:
        """See `ProcessHandle.send`."""
        self._fed = True
        return await self._attachment.stream.send(data)

    async def send_eof(self) -> None:
        """See `ProcessHandle.send_eof`."""
        await self._attachment.stream.send_eof()

    async def _keep_output(self) -> None:
        kept = 0
        broken = (OSError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError)
        with contextlib.suppress(*broken):  # a connection that breaks now is no news
            while (chunk := await self._attachment.frames.receive()) is not None:
                kept += len(chunk.data)
                if kept <= _KEPT_BYTES:
                    self._pending.append(chunk)

    async def _ask(self) -> Exit | None:
        try:
            state = await self._container.inspect_exec(self._exec_id)
            if state.running:
                return None
            if state.code not in _DEATH_CODES:
                return Exit(state.code, oom_killed=self._oom.seen())
            killed = await self._oom.certain()
            if await self._container.running():
                return Exit(state.code, oom_killed=killed)
        except EngineError as exc:
            if not gone(exc):
                raise
        if self._oom.seen():  # under gVisor a kill for want of memory takes the container with it
            return Exit(_SIGKILL_CODE, oom_killed=True)
        raise SandboxGone("the container ended while an execution ran in it")


class FinishedProcess:
    """A command that could not be started: a reason on stderr and an exit code."""

    def __init__(self, code: int, reason: str, *, missing: bool) -> None:
        self._exit = Exit(code, missing=missing)
        self._pending: OutputChunk | None = OutputChunk("stderr", reason.encode())

    async def receive(self) -> OutputChunk | None:
        """See `Execution.receive`."""
        await anyio.lowlevel.checkpoint()
        chunk, self._pending = self._pending, None
        return chunk

    async def poll(self) -> Exit | None:
        """See `Execution.poll`."""
        return self._exit

    async def wait(self) -> Exit:
        """See `Execution.wait`."""
        return self._exit

    async def kill(self) -> None:
        """See `Execution.kill`."""

    async def aclose(self) -> None:
        """See `Execution.aclose`."""

    async def send(self, data: memoryview) -> int:
        """See `ProcessHandle.send`: nobody reads."""
        raise anyio.BrokenResourceError

    async def send_eof(self) -> None:
        """See `ProcessHandle.send_eof`."""
