"""What every row of the suite stands on: fixtures, the event loops, and who declares what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import ClassVar, TypeVar
from uuid import uuid4

import anyio
import pytest

from sandboxio.audit import AuditConfig, AuditEvent
from sandboxio.models import Capability, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.commands import CommandProbes
from sandboxio.testing.suite.probes import BehaviourProbes

__all__ = ["RecordingSink", "SharedSandbox", "SuiteBase", "names_in", "needs", "undeclared", "unique"]

TestT = TypeVar("TestT", bound=Callable[..., object])

_NEEDS = "sandboxio_needs"
_UNDECLARED = "sandboxio_undeclared"
_NO_CAPABILITY = Capability(0)
_SHARED_LIFETIME = 3600.0


class RecordingSink:
    """An audit sink that keeps every event."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    async def emit(self, event: AuditEvent) -> None:
        """Keep the event."""
        self.events.append(event)

    def of(self, sandbox: AsyncSandbox) -> list[AuditEvent]:
        """The events of one sandbox, the oldest first."""
        return [event for event in self.events if event.sandbox_id == sandbox.id]


class SharedSandbox:
    """Holds a sandbox, and knows by its repr whether it is still in the state it was in."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.replace(sandbox)

    def replace(self, sandbox: AsyncSandbox) -> None:
        """Hold another one."""
        self.sandbox = sandbox
        self._looked = repr(sandbox)

    @property
    def has_changed(self) -> bool:
        """Whether it shows another state than at first."""
        return repr(self.sandbox) != self._looked


def needs(*flags: Capability) -> Callable[[TestT], TestT]:
    """The test is about these capabilities; it is skipped, visibly, where one is not declared."""
    return _marking(_NEEDS, flags)


def undeclared(*flags: Capability) -> Callable[[TestT], TestT]:
    """The test is about what happens without these; it is skipped where one of them is declared."""
    return _marking(_UNDECLARED, flags)


def _marking(name: str, flags: tuple[Capability, ...]) -> Callable[[TestT], TestT]:
    wanted = _NO_CAPABILITY
    for flag in flags:
        wanted |= flag

    def mark(test: TestT) -> TestT:
        setattr(test, name, wanted)
        return test

    return mark


def unique(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}-{uuid4().hex[:12]}"


def names_in(folder: Path) -> list[str]:
    """What a local folder holds."""
    return sorted(path.name for path in folder.iterdir())


class SuiteBase(CommandProbes, BehaviourProbes):
    """Fixtures shared by all rows. A subclass of the suite overrides `make_backend`.

    Attributes:
        anyio_backends: The event loops under which every test runs.
        template: What `create` is given as its template.
        short_lifetime: Seconds; a lifetime that a test can wait for, and that the provider keeps.
        resource_caps_supported: `False` where a template fixes the caps; they are then refused.
        allowlist_supported: `False` where egress cannot be filtered; a list is then refused.
        allowlist_ports_supported: `False` where it is filtered by host alone; a port is then refused,
            and the canary has to listen on port 80.
        cancellation_points: At most at how many awaits of one `create` cancellation is tried.
        backend_under_test: The backend that the tests use now; set by the suite, for probes.
    """

    pytestmark: ClassVar[list[pytest.MarkDecorator]] = [
        pytest.mark.anyio,
        pytest.mark.filterwarnings("ignore::sandboxio.errors.UnverifiedIsolationWarning"),
    ]
    anyio_backends: ClassVar[tuple[str, ...]] = ("asyncio", "trio")
    template: ClassVar[str | None] = None
    short_lifetime: ClassVar[float] = 3.0
    resource_caps_supported: ClassVar[bool] = True
    allowlist_supported: ClassVar[bool] = True
    allowlist_ports_supported: ClassVar[bool] = True
    cancellation_points: ClassVar[int] = 24
    backend_under_test: ClassVar[Backend]

    def make_backend(self, audit: AuditConfig) -> Backend:
        """The backend under test, whose records of operations go to `audit`. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override make_backend(audit)")

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Run every test under each of `anyio_backends`."""
        if "anyio_backend" in metafunc.fixturenames:
            metafunc.parametrize("anyio_backend", cls.anyio_backends, scope="class")

    @pytest.fixture(scope="class")
    @classmethod
    def events(cls) -> RecordingSink:
        """All audit events of the backend."""
        return RecordingSink()

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, events: RecordingSink) -> Backend:
        """The backend under test."""
        cls.backend_under_test = cls().make_backend(AuditConfig(sinks=(events,)))
        return cls.backend_under_test

    @pytest.fixture(scope="class")
    @classmethod
    async def shared(cls, anyio_backend: object, backend: Backend) -> AsyncIterator[SharedSandbox | None]:
        """What holds the sandbox that the tests share; `None` where none can be created."""
        if Capability.NETWORK_POLICY not in backend.capabilities:
            yield None
            return
        suite = cls()
        shared = SharedSandbox(await suite.create(backend, timeout=_SHARED_LIFETIME))
        yield shared
        await shared.sandbox.kill()

    @pytest.fixture
    async def sandbox(self, shared: SharedSandbox, backend: Backend) -> AsyncSandbox:
        """A sandbox shared by all tests that do it no harm; a new one if a failed test ended it."""
        if shared.has_changed:
            shared.replace(await self.create(backend, timeout=_SHARED_LIFETIME))
        return shared.sandbox

    @pytest.fixture(scope="class")
    @classmethod
    def declared(cls, backend: Backend, shared: SharedSandbox | None) -> Capability:
        """The word of the sandbox on what it can do; that of the backend where there is none."""
        return backend.capabilities if shared is None else shared.sandbox.capabilities

    @pytest.fixture(autouse=True)
    def _applicable(self, request: pytest.FixtureRequest, declared: Capability) -> None:
        wanted: Capability = getattr(request.function, _NEEDS, _NO_CAPABILITY)
        unwanted: Capability = getattr(request.function, _UNDECLARED, _NO_CAPABILITY)
        if Capability.NETWORK_POLICY not in declared and Capability.NETWORK_POLICY not in unwanted:
            pytest.skip("NETWORK_POLICY is not declared, so no sandbox can be created")
        for flag in wanted:
            if flag not in declared:
                pytest.skip(f"{flag.name} is not declared")
        for flag in unwanted:
            if flag in declared:
                pytest.skip(f"{flag.name} is declared")

    @pytest.fixture
    async def fresh(self, backend: Backend) -> AsyncIterator[AsyncSandbox]:
        """A sandbox of the test's own, which it may harm."""
        async with await self.create(backend) as sandbox:
            yield sandbox

    @pytest.fixture
    async def folder(self, sandbox: AsyncSandbox) -> str:
        """A new folder in the shared sandbox, named relative to its working folder."""
        name = unique("folder")
        await sandbox.files.mkdir(name)
        return name

    async def create(
        self,
        backend: Backend,
        *,
        resources: Resources | None = None,
        network: NetworkPolicy | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        timeout: float = 300.0,
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncSandbox:
        """A sandbox as the backend gives it."""
        return await backend.create(
            template=self.template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
        )

    async def until_processes(self, sandbox: AsyncSandbox, marker: str, at_least: int) -> None:
        """Wait until so many processes carry the marker.

        Raises:
            AssertionError: They did not come within 20 s.
        """
        count = 0
        with anyio.move_on_after(20):
            while (count := await self.count_processes(sandbox, marker)) < at_least:
                await anyio.sleep(0.02)
        assert count >= at_least, f"{count} of {at_least} processes started"
