"""An asynchronous backend whose sandboxes say what happens to them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self, cast

import anyio

from sandboxio import (
    Backend,
    Capability,
    ConnectError,
    ExecResult,
    IsolationTier,
    OutputChunk,
    PathNotFound,
    SandboxGone,
)


class ScriptedProcess:
    """Writes two chunks."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.written = b""
        self._chunks = [OutputChunk("stdout", b"one"), OutputChunk("stderr", b"two")]

    async def wait(self) -> ExecResult:
        self._chunks.clear()
        self.returncode = 0
        return ExecResult(0, "", "", streamed=True)

    async def kill(self) -> None:
        self.returncode = 137

    async def write(self, data: bytes | str) -> None:
        self.written += data.encode() if isinstance(data, str) else data

    async def close_stdin(self) -> None:
        self.written += b"<end>"

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        return self

    async def __anext__(self) -> OutputChunk:
        await anyio.lowlevel.checkpoint()
        if not self._chunks:
            await self.wait()
            raise StopAsyncIteration
        return self._chunks.pop(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self.returncode is None:
            await self.kill()


class ScriptedFiles:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> object:
            await anyio.lowlevel.checkpoint()
            self.calls.append((name, *args, kwargs))
            if "missing" in args:
                raise PathNotFound("missing is not there") from KeyError("missing")
            return {"read": b"data", "exists": True, "ls": ()}.get(name)

        return call


class ScriptedSandbox:
    """Says what happens to it."""

    id = "abc"
    backend = "scripted"
    capabilities = Capability.RUN_COMMAND
    isolation = IsolationTier.CONTAINER
    metadata: ClassVar[Mapping[str, str]] = {"a": "b"}
    native = "the native object"

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.files = ScriptedFiles()
        self.process = ScriptedProcess()
        self.thread = threading.current_thread().name
        self.hanging = threading.Event()
        self.unblocked = threading.Event()
        self.enter_error: Exception | None = None

    def __repr__(self) -> str:
        return "<Sandbox scripted:abc>"

    async def run(self, cmd: Any, **options: Any) -> ExecResult:
        await anyio.lowlevel.checkpoint()
        if cmd == "hang":
            try:
                self.hanging.set()
                await anyio.sleep_forever()
            finally:
                self.log.append("tree ended")
        if cmd == "block":  # as foreign code does that waits without `await`
            self.hanging.set()
            self.unblocked.wait(30)
            self.log.append("unblocked")
        if callable(cmd):
            cmd()
        if cmd == "fail":
            try:
                raise OSError("reset")
            except OSError as exc:
                raise ConnectError("no answer") from exc
        return ExecResult(0, f"{cmd} {options}", "")

    async def run_code(self, code: str, **options: Any) -> ExecResult:
        return ExecResult(0, f"{code} {options}", "")

    def stream(self, cmd: Any, **options: Any) -> ScriptedProcess:
        return self.process

    async def kill(self) -> None:
        self.log.append("kill")

    async def detach(self) -> str:
        self.log.append("detach")
        return self.id

    async def __aenter__(self) -> Self:
        if self.enter_error is not None:
            raise self.enter_error
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.log.append(f"exit {exc_type.__name__ if exc_type else None}")


class ScriptedBackend:
    name = "scripted"
    capabilities = Capability.RUN_COMMAND
    isolation = IsolationTier.CONTAINER

    def __init__(self, create_fails: BaseException | None = None) -> None:
        self.create_fails = create_fails
        self.log: list[str] = []
        self.sandbox: ScriptedSandbox | None = None
        self.creating = threading.Event()
        self.hang = False

    async def create(self, **request: Any) -> ScriptedSandbox:
        await anyio.lowlevel.checkpoint()
        if self.create_fails is not None:
            raise self.create_fails
        if self.hang:
            self.creating.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.log.append("creation undone")
        self.sandbox = ScriptedSandbox(self.log)
        return self.sandbox

    async def connect(self, sandbox_id: str) -> ScriptedSandbox:
        if sandbox_id != "abc":
            raise SandboxGone(f"there is no {sandbox_id}")
        self.sandbox = ScriptedSandbox(self.log)
        return self.sandbox


def scripted() -> tuple[ScriptedBackend, Backend]:
    backend = ScriptedBackend()
    return backend, cast("Backend", backend)
