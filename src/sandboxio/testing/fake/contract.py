"""The contract suite over a fake: the probes that look behind it, also for fakes made from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import ClassVar

from sandboxio.audit import AuditConfig
from sandboxio.errors import AuthError
from sandboxio.models import Resources
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.fake.backend import FakeBackend, FakeConfig
from sandboxio.testing.fake.sandbox import VirtualSandbox
from sandboxio.testing.suite import BackendContractSuite, Canary, SuiteBase

__all__ = ["FakeContractSuite", "FakeProbes"]


class FakeProbes(SuiteBase):
    """The probes. Override `config_for`, or `backend_class` for a fake that differs."""

    backend_class: ClassVar[type[FakeBackend]] = FakeBackend

    @property
    def fake(self) -> FakeBackend:
        """The fake that the tests use now."""
        assert isinstance(self.backend_under_test, FakeBackend)
        return self.backend_under_test

    def config_for(self, audit: AuditConfig) -> FakeConfig:
        """The configuration under test."""
        return FakeConfig(audit=audit)

    def make_backend(self, audit: AuditConfig) -> Backend:
        """A fake of its own for each class and event loop."""
        return self.backend_class(self.config_for(audit))

    async def count_processes(self, sandbox: AsyncSandbox, marker: str) -> int:
        """Look into the virtual process table."""
        processes = _virtual(sandbox).kernel.processes.values()
        return sum(process.variables.get(self.marker_variable) == marker for process in processes)

    async def count_sandboxes(self, backend: Backend, metadata: Mapping[str, str]) -> int:
        """Look into what the fake's provider holds."""
        return sum(metadata.items() <= sandbox.metadata.items() for sandbox in self.fake.sandboxes)

    async def pass_time(self, sandbox: AsyncSandbox, seconds: float) -> None:
        """Move the virtual clock."""
        self.fake.clock.advance(seconds)

    async def expire(self, sandbox: AsyncSandbox) -> None:
        """End it at the provider."""
        self.fake.expire(sandbox)

    @asynccontextmanager
    async def slow_create(self, backend: Backend) -> AsyncGenerator[None, None]:
        """Half a second of real time for each creation."""
        with self.fake.slow_creates(0.5):
            yield

    @asynccontextmanager
    async def failing_kill(self, sandbox: AsyncSandbox) -> AsyncGenerator[None, None]:
        """Have the provider refuse."""
        with self.fake.refusing_kills(sandbox):
            yield

    @asynccontextmanager
    async def provider_failure(self, backend: Backend) -> AsyncGenerator[None, None]:
        """Have the provider not answer."""
        with self.fake.unreachable():
            yield

    @asynccontextmanager
    async def missing_credential(self) -> AsyncGenerator[tuple[Backend, str], None]:
        """Have the provider ask for a key."""
        error = AuthError("the fake provider asks for a key", hint="set FAKE_API_KEY")
        with self.fake.failing_creates(error):
            yield self.fake, "FAKE_API_KEY"

    async def provider_labels(self, sandbox: AsyncSandbox) -> Mapping[str, str]:
        """What the fake's provider stores."""
        return _virtual(sandbox).labels

    async def provider_view(self, sandbox: AsyncSandbox) -> str:
        """All that the fake's provider holds of it, besides what runs in it."""
        virtual = _virtual(sandbox)
        return repr((virtual, virtual.template, virtual.labels, virtual.variables, virtual.limits))

    async def applied_resources(self, sandbox: AsyncSandbox) -> Resources:
        """The caps of the virtual sandbox."""
        return _virtual(sandbox).limits

    @asynccontextmanager
    async def canary(self) -> AsyncGenerator[Canary, None]:
        """A server in the fake's world."""
        server = self.fake.serve("canary.test", 8000)
        yield Canary("canary.test", 8000, lambda: server.hits)

    @asynccontextmanager
    async def hostile_archive(
        self, sandbox: AsyncSandbox, path: str, archive: bytes
    ) -> AsyncGenerator[None, None]:
        """Serve the archive in place of the tree."""
        virtual = _virtual(sandbox)
        virtual.archives[f"/work/{path}"] = archive
        yield
        del virtual.archives[f"/work/{path}"]


class FakeContractSuite(FakeProbes, BackendContractSuite):
    """The whole suite over a fake."""


def _virtual(sandbox: AsyncSandbox) -> VirtualSandbox:
    native = sandbox.native
    assert isinstance(native, VirtualSandbox)
    return native
