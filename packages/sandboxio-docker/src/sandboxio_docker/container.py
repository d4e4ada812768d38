"""One container as the engine offers it: inspect, remove, and the three calls of an execution."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio

from sandboxio.errors import ConnectError
from sandboxio_docker.answer import Answer as EngineAnswer
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError
from sandboxio_docker.multiplex import FrameReader
from sandboxio_docker.stream import ByteStream

__all__ = ["Answer", "Attachment", "Container", "ExecState", "gone"]

SHELL: Final = "/bin/sh"
_NOT_FOUND: Final = 404
_REMOVAL_CHECKS: Final = 200
_REMOVAL_PAUSE: Final = 0.02
_SCRIPT_OUTPUT_LIMIT: Final = 64 * 1024
_CODE_TRIES: Final = 40
_CODE_PAUSE: Final = 0.005


def gone(exc: EngineError) -> bool:
    """Whether the engine says that the container, or the execution with it, is no more."""
    text = exc.message.lower()
    return exc.status == _NOT_FOUND or "is not running" in text or "is already in progress" in text


@dataclass(frozen=True, slots=True)
class ExecState:
    """What the engine knows about an execution.

    Attributes:
        running: It is being started, or runs.
        code: Its leader's exit code, once it does not.
        begun: Its program was started.
    """

    running: bool
    code: int | None
    begun: bool


@dataclass(frozen=True, slots=True)
class Attachment:
    """The streams of an execution that was started.

    Attributes:
        stream: The connection, for standard input.
        frames: Its output.
    """

    stream: ByteStream
    frames: FrameReader


@dataclass(frozen=True, slots=True)
class Answer:
    """What a script of this adapter's own wrote, and how it ended; `None` when it has not."""

    output: bytes
    code: int | None


class Container:
    """A container of one engine.

    Args:
        engine: The engine.
        id: The container's id.
    """

    def __init__(self, engine: Engine, id: str) -> None:  # noqa: A002 -- the engine's own word
        self.engine = engine
        self.id = id

    async def inspect(self) -> EngineAnswer:
        """The engine's description of the container."""
        return await self.engine.get(f"/containers/{self.id}/json")

    async def running(self) -> bool:
        """Whether it runs."""
        try:
            return bool((await self.inspect()).part("State")["Running"])
        except EngineError as exc:
            if gone(exc):
                return False
            raise

    async def remove(self) -> bool:
        """End it and remove it with its volumes, and return whether it was still there."""
        try:
            await self.engine.request("DELETE", f"/containers/{self.id}", query={"force": "1", "v": "1"})
        except EngineError as exc:
            if not gone(exc):
                raise
            if "already in progress" not in exc.message:
                return False
            await self._until_removed()
        return True

    async def put_archive(self, folder: str, archive: AsyncIterator[bytes], size: int) -> None:
        """Have the engine unpack a tar archive of `size` bytes, as root, into a folder."""
        await self.engine.upload(f"/containers/{self.id}/archive", archive, size, path=folder)

    async def _until_removed(self) -> None:
        """Wait for a removal that the engine began by itself."""
        for _ in range(_REMOVAL_CHECKS):
            try:
                await self.inspect()
            except EngineError as exc:
                if exc.status == _NOT_FOUND:
                    return
                raise
            await anyio.sleep(_REMOVAL_PAUSE)
        raise ConnectError(
            f"the engine does not finish removing the container {self.id[:12]}",
            hint="look at the engine's log, then end it with `sandboxio reap --kill`",
        )

    async def create_exec(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        without: Iterable[str] = (),
        cwd: str | None = None,
        stdin: bool = False,
    ) -> str:
        """Prepare an execution and return its id; nothing runs yet.

        Args:
            command: The program and its arguments.
            env: Variables beside the container's own.
            without: Variables of the container that it does not get.
            cwd: The working folder.
            stdin: Whether it is fed.
        """
        body: dict[str, Any] = {
            "Cmd": list(command),
            "AttachStdin": stdin,
            "AttachStdout": True,
            "AttachStderr": True,
        }
        # An entry that is a name alone takes the variable away.
        body["Env"] = [*without, *(f"{name}={value}" for name, value in (env or {}).items())]
        if cwd is not None:
            body["WorkingDir"] = cwd
        answer = await self.engine.post(f"/containers/{self.id}/exec", body)
        return str(answer["Id"])

    async def start_exec(self, exec_id: str) -> Attachment:
        """Start an execution and take its streams over."""
        hijacked = await self.engine.hijack(f"/exec/{exec_id}/start", {"Detach": False, "Tty": False})
        return Attachment(hijacked.stream, FrameReader(hijacked.stream, hijacked.leftover))

    async def inspect_exec(self, exec_id: str) -> ExecState:
        """Whether an execution runs, and its leader's exit code once it does not."""
        try:
            answer = await self.engine.get(f"/exec/{exec_id}/json")
        except EngineError as exc:
            forgotten = exc.status == _NOT_FOUND and "no such exec" in exc.message.lower()
            if forgotten and await self.running():  # it ended long ago; descendants may live on
                return ExecState(running=False, code=None, begun=True)
            raise
        running = bool(answer["Running"])
        return ExecState(running, None if running else answer.get("ExitCode"), bool(answer.get("Pid")))

    async def run_script(self, script: str, *arguments: str) -> Answer:
        """Run a short script of this adapter's own in the container's shell."""
        exec_id = await self.create_exec([SHELL, "-c", script, "sh", *arguments])
        attachment = await self.start_exec(exec_id)
        output = bytearray()
        try:
            while len(output) < _SCRIPT_OUTPUT_LIMIT:
                chunk = await attachment.frames.receive()
                if chunk is None:
                    break
                if chunk.stream == "stdout":
                    output += chunk.data
        finally:
            attachment.stream.close()
        code = None
        for _ in range(_CODE_TRIES):
            state = await self.inspect_exec(exec_id)
            if not state.running:
                code = state.code
                break
            await anyio.sleep(_CODE_PAUSE)
        return Answer(bytes(output), code)
