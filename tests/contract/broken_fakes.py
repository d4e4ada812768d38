"""Three fakes, each with one fault. `test_broken_fakes` runs the suite over them in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from sandboxio.adapter.driver import Exit, ProcessHandle, ProcessSpec
from sandboxio.adapter.provision import CreateRequest, Launched
from sandboxio.network import NetworkPolicy
from sandboxio.testing.fake import FakeBackend
from sandboxio.testing.fake.contract import FakeContractSuite
from sandboxio.testing.fake.driver import FakeDriver, FakeProcessPort
from sandboxio.testing.fake.execution import FakeExecution


class LeakyFake(FakeBackend):
    """Takes every network policy, and lets everything through."""

    async def launch(self, request: CreateRequest, prepared: str) -> Launched:
        return await super().launch(replace(request, network=NetworkPolicy(egress="allow")), prepared)


class OrphaningFake(FakeBackend):
    """Leaves behind what an interrupted creation made."""

    async def discard(self, request: CreateRequest) -> None:
        pass


class ExitCodeSwallowingFake(FakeBackend):
    """Reports every command that ended by itself as a success."""

    async def launch(self, request: CreateRequest, prepared: str) -> Launched:
        launched = await super().launch(request, prepared)
        assert isinstance(launched.driver, FakeDriver)
        port = launched.driver.processes
        assert port is not None
        launched.driver.processes = SwallowingPort(port)
        return launched


class SwallowingPort(FakeProcessPort):
    def __init__(self, port: FakeProcessPort) -> None:
        self._port = port

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        handle = await self._port.start(spec)
        assert isinstance(handle, FakeExecution)
        handle.__class__ = SwallowingExecution
        return handle


class SwallowingExecution(FakeExecution):
    def _exit(self) -> Exit | None:
        ended = super()._exit()
        by_itself = ended is not None and ended.code is not None and ended.code < 128 and not ended.missing
        return replace(ended, code=0) if ended is not None and by_itself else ended


class BrokenFakeSuite(FakeContractSuite):
    anyio_backends: ClassVar[tuple[str, ...]] = ("asyncio",)


class TestLeaky(BrokenFakeSuite):
    backend_class = LeakyFake


class TestOrphaning(BrokenFakeSuite):
    backend_class = OrphaningFake


class TestExitCodeSwallowing(BrokenFakeSuite):
    backend_class = ExitCodeSwallowingFake
