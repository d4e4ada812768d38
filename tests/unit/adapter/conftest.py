"""A driver whose every answer a test writes beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from sandboxio.adapter.driver import Exit, ProcessSpec
from sandboxio.adapter.guard import Guard, Identity
from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.operation import Recorder
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.audit import AuditConfig, AuditEvent
from sandboxio.errors import SandboxError
from sandboxio.models import Capability, IsolationTier, OutputChunk, Resources
from sandboxio.redaction import Redactor

EVERYTHING = Capability.RUN_COMMAND | Capability.RUN_CODE | Capability.STREAMING


_SUCCESS = Exit(0)


class ScriptedProcess:
    """Yields its chunks, then ends or hangs; records what is done to it."""

    def __init__(
        self,
        chunks: Sequence[bytes] = (),
        *,
        exit: Exit | None = _SUCCESS,  # noqa: A002 -- the driver's word
        leader_exits: bool = True,
        end_of_output: bool = True,
        echo: bool = False,
        kill_error: Exception | None = None,
        kill_hangs: bool = False,
    ) -> None:
        self.chunks = [OutputChunk("stdout", chunk) for chunk in chunks]
        self.exit = exit
        self.leader_exits = leader_exits
        self.end_of_output = end_of_output
        self.echo = echo
        self.kill_error = kill_error
        self.kill_hangs = kill_hangs
        self.input = b""
        self.input_ended = False
        self.kills = 0
        self.closed = 0
        self.polls = 0
        self._news = anyio.Event()

    async def receive(self) -> OutputChunk | None:
        await anyio.lowlevel.checkpoint()
        while not self.chunks:
            done = self.end_of_output and (not self.echo or self.input_ended)
            if done or self.kills:
                return None
            self._news = anyio.Event()
            await self._news.wait()
        return self.chunks.pop(0)

    async def poll(self) -> Exit | None:
        self.polls += 1
        return self.exit if self.leader_exits else None

    async def wait(self) -> Exit:
        if self.kills:
            return Exit(137)
        if not self.leader_exits or self.exit is None:
            await anyio.sleep_forever()
        assert self.exit is not None
        return self.exit

    async def send(self, data: memoryview) -> int:
        if self.echo and len(self.chunks) > 3:  # a full pipe: it takes nothing until it is read
            await anyio.sleep(0.001)
            return 0
        self.input += data[:1000]
        if self.echo:
            self.chunks.append(OutputChunk("stdout", bytes(data[:1000])))
        self._news.set()
        return min(1000, len(data))

    async def send_eof(self) -> None:
        self.input_ended = True
        self._news.set()

    async def kill(self) -> None:
        self.kills += 1
        if self.kill_error is not None:
            raise self.kill_error
        if self.kill_hangs:
            await anyio.sleep_forever()
        self._news.set()

    async def aclose(self) -> None:
        self.closed += 1


class ScriptedDriver:
    """A driver of one scripted process at a time."""

    shell = "/bin/sh"
    home = "/work"
    template = "scripted"
    native = None
    code = None
    files = None

    def __init__(self, process: ScriptedProcess | Exception) -> None:
        self.process = process
        self.specs: list[ProcessSpec] = []
        self.running = True
        self.destroyed = 0
        self.detached = 0
        self.closed = 0
        self.destroy_error: Exception | None = None
        self.limits = Resources(memory_mb=64)

    @property
    def processes(self) -> ScriptedDriver:
        return self

    async def start(self, spec: ProcessSpec) -> ScriptedProcess:
        self.specs.append(spec)
        if isinstance(self.process, Exception):
            raise self.process
        return self.process

    async def alive(self) -> bool:
        return self.running

    async def destroy(self) -> None:
        self.destroyed += 1
        if self.destroy_error is not None:
            raise self.destroy_error
        self.running = False

    async def detach(self) -> None:
        self.detached += 1

    async def aclose(self) -> None:
        self.closed += 1

    def translate(self, exc: Exception) -> SandboxError | None:
        return None


class RecordingSink:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    async def emit(self, event: AuditEvent) -> None:
        self.events.append(event)


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def scripted() -> type[ScriptedProcess]:
    return ScriptedProcess


@pytest.fixture
def make_sandbox(sink: RecordingSink) -> Callable[..., tuple[Sandbox, ScriptedDriver]]:
    def make(
        process: ScriptedProcess | Exception | None = None,
        *,
        lifetime: float = 60,
        secrets: dict[str, str] | None = None,
        owned: bool = True,
        **audit: Any,
    ) -> tuple[Sandbox, ScriptedDriver]:
        driver = ScriptedDriver(process or ScriptedProcess())
        redactor = Redactor((secrets or {}).values())
        identity = Identity("box-1", "scripted", IsolationTier.CONTAINER, {"tenant_id": "t1"})
        sandbox = Sandbox(
            guard=Guard(driver, identity, EVERYTHING, Lifetime(lifetime), redactor),  # type: ignore[arg-type]
            recorder=Recorder(identity, AuditConfig(sinks=(sink,), **audit), redactor),
            secrets=secrets or {},
            owned=owned,
        )
        return sandbox, driver

    return make
