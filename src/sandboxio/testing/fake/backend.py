"""The fake backend: a provider in memory for tests of code that uses sandboxio.

It executes nothing on the host. Commands run in a small virtual shell, code in a very small
Python, time on a virtual clock; what these do not know is refused with an error that says how to
script the response. Everything that is asked is recorded, with the network policy in effect.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self
from uuid import uuid4

import anyio
import anyio.lowlevel

from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.provision import CreateRequest, Launched, attach, provision
from sandboxio.audit import AuditConfig
from sandboxio.diagnosis import Check
from sandboxio.errors import ConfigurationError, SandboxError
from sandboxio.models import Capability, IsolationTier, ManagedSandbox, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.fake.clock import VirtualClock
from sandboxio.testing.fake.driver import FakeDriver
from sandboxio.testing.fake.network import Denial, FakeServer
from sandboxio.testing.fake.provider import GoneError, Provider, translate
from sandboxio.testing.fake.sandbox import VirtualSandbox
from sandboxio.testing.fake.scripted import FakeCall, Match, Response, check_error

__all__ = ["ALL_CAPABILITIES", "FakeBackend", "FakeConfig"]

ALL_CAPABILITIES: Final = (
    Capability.RUN_COMMAND
    | Capability.RUN_CODE
    | Capability.STATEFUL_CODE
    | Capability.STREAMING
    | Capability.FILESYSTEM
    | Capability.UPLOAD_DOWNLOAD
    | Capability.NETWORK_POLICY
    | Capability.NETWORK_ALLOWLIST
    | Capability.EGRESS_LEARN
    | Capability.RAW_OUTPUT
)
"""All that the fake can do, and declares unless it is told to declare less."""


@dataclass(frozen=True, slots=True)
class FakeConfig:
    """How a fake behaves.

    Attributes:
        template: What `create` is given as its template when the caller names none.
        capabilities: What it declares; at most `ALL_CAPABILITIES`.
        isolation: The tier it claims. It isolates by executing nothing.
        audit: Where records of operations go.
        create_timeout: How long a creation may take, in seconds.

    Raises:
        ConfigurationError: It would declare what it cannot do.

    Example: `FakeConfig(capabilities=Capability.RUN_COMMAND | Capability.NETWORK_POLICY)`
    """

    backend_name: ClassVar[str] = "fake"

    template: str | None = None
    capabilities: Capability = ALL_CAPABILITIES
    isolation: IsolationTier = IsolationTier.CONTAINER
    audit: AuditConfig = field(default_factory=AuditConfig)
    create_timeout: float = 60.0

    def __post_init__(self) -> None:
        beyond = self.capabilities & ~ALL_CAPABILITIES
        if beyond:
            names = ", ".join(flag.name or "" for flag in beyond)
            raise ConfigurationError(
                f"the fake cannot do {names}", hint="declare only what ALL_CAPABILITIES holds"
            )

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> Self:
        """The configuration that `fake://TEMPLATE` means. It has no parameters."""
        if params:
            raise ConfigurationError(
                f"the fake knows no parameter {min(params)!r:.80}", hint="write fake:// without parameters"
            )
        return cls(template=template)


class FakeBackend:
    """A backend in memory, deterministic, with a clock of its own.

    Each fake is a provider of its own: what one created, another cannot connect to.

    Args:
        config: How it behaves.

    Example:
        fake = FakeBackend()
        fake.on_run("pytest", returns="3 passed")
        async with sandboxio.create(fake) as sb:
            assert (await sb.run(["pytest", "-q"])).stdout == "3 passed"
        assert fake.calls[1].command == ("pytest", "-q")
    """

    config_type: ClassVar[type[FakeConfig]] = FakeConfig

    def __init__(self, config: FakeConfig | None = None) -> None:
        self._config = config or FakeConfig()
        self._provider = Provider()

    def __repr__(self) -> str:
        return f"<FakeBackend with {len(self._provider.sandboxes)} sandboxes>"

    @property
    def name(self) -> str:
        """`fake`."""
        return FakeConfig.backend_name

    @property
    def capabilities(self) -> Capability:
        """What it declares."""
        return self._config.capabilities

    @property
    def isolation(self) -> IsolationTier:
        """The tier it claims."""
        return self._config.isolation

    @property
    def audit(self) -> AuditConfig:
        """Where records of operations go."""
        return self._config.audit

    @property
    def create_timeout(self) -> float:
        """How long a creation may take, in seconds."""
        return self._config.create_timeout

    @property
    def clock(self) -> VirtualClock:
        """The time at this provider. `fake.clock.advance(60)` lets a minute pass."""
        return self._provider.clock

    @property
    def calls(self) -> tuple[FakeCall, ...]:
        """All that was asked of it, the oldest first."""
        return tuple(self._provider.calls)

    @property
    def denials(self) -> tuple[Denial, ...]:
        """All connections that a network policy refused, the oldest first."""
        return tuple(self._provider.denials)

    @property
    def sandboxes(self) -> tuple[VirtualSandbox, ...]:
        """The sandboxes that run; also what `sb.native` of each of them is."""
        return tuple(self._provider.sandboxes.values())

    def on_run(
        self, match: Match, *, returns: Response | None = None, raises: Exception | None = None
    ) -> None:
        """Script the outcome of commands, given to `run` or `stream`.

        Args:
            match: Text that the command line contains, a pattern found in it, or a predicate.
            returns: A result, standard output, or a function of the call that gives one.
            raises: An error of the library, which the caller gets as it is. Any other exception stands
                for one of a provider's SDK: the caller gets the error that it means, `ConnectError` if
                none.

        Raises:
            ConfigurationError: It has no outcome, or two, or an argument is of another type.

        Example: `fake.on_run("git status", returns=ExecResult(128, "", "not a git repository"))`
        """
        self._provider.scripts.add("run", match, returns, raises)

    def on_run_code(
        self, match: Match = "", *, returns: Response | None = None, raises: Exception | None = None
    ) -> None:
        """Script the outcome of code. Arguments and errors are those of `on_run`.

        Example: `fake.on_run_code("import pandas", returns="   a  b")`
        """
        self._provider.scripts.add("run_code", match, returns, raises)

    def serve(self, host: str, port: int = 443, body: bytes | str = b"") -> FakeServer:
        """Put a server into the fake's world, which sandboxes reach if their policy lets them.

        Example: `server = fake.serve("example.org", body="ok")`, then `assert server.hits == 0`
        """
        server = FakeServer(body.encode() if isinstance(body, str) else body)
        self._provider.servers[host.lower(), port] = server
        return server

    def expire(self, sandbox: AsyncSandbox) -> None:
        """End a sandbox behind the library's back, as the provider does at the end of its lifetime."""
        self._provider.end(self._held(sandbox))

    @contextmanager
    def failing_creates(self, error: Exception) -> Generator[None, None, None]:
        """While entered, every creation fails with this.

        Raises:
            ConfigurationError: It is no exception object.
        """
        check_error(error)
        self._provider.create_error = error
        try:
            yield
        finally:
            self._provider.create_error = None

    @contextmanager
    def slow_creates(self, seconds: float) -> Generator[None, None, None]:
        """While entered, the provider takes so many seconds of real time to make a sandbox."""
        self._provider.create_seconds = seconds
        try:
            yield
        finally:
            self._provider.create_seconds = 0.0

    @contextmanager
    def refusing_kills(self, sandbox: AsyncSandbox) -> Generator[None, None, None]:
        """While entered, the provider refuses to end this sandbox."""
        self._provider.unkillable.add(sandbox.id)
        try:
            yield
        finally:
            self._provider.unkillable.discard(sandbox.id)

    @contextmanager
    def unreachable(self) -> Generator[None, None, None]:
        """While entered, the provider does not answer anything."""
        self._provider.unreachable = True
        try:
            yield
        finally:
            self._provider.unreachable = False

    async def create(
        self,
        *,
        template: str | None,
        resources: Resources | None,
        network: NetworkPolicy | None,
        env: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None,
        timeout: float,
        metadata: Mapping[str, str] | None,
    ) -> AsyncSandbox:
        """A virtual sandbox."""
        return await provision(
            self,
            template=template or self._config.template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
        )

    async def connect(self, sandbox_id: str) -> AsyncSandbox:
        """A handle to a virtual sandbox that runs."""
        return await attach(self, sandbox_id)

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        """Every sandbox that runs."""
        await anyio.lowlevel.checkpoint()
        self._provider.require_reachable()
        return tuple(
            ManagedSandbox(
                sandbox.id, self.name, sandbox.created_on, sandbox.expires_on, sandbox.metadata, "running"
            )
            for sandbox in self._provider.sandboxes.values()
        )

    async def kill_managed(self, sandbox_id: str) -> None:
        """End one; one that has ended is success."""
        await anyio.lowlevel.checkpoint()
        self._provider.require_reachable()
        sandbox = self._provider.sandboxes.get(sandbox_id)
        if sandbox is not None:
            self._provider.end(sandbox)

    async def diagnose(self) -> tuple[Check, ...]:
        """It always works, unless it was made unreachable."""
        await anyio.lowlevel.checkpoint()
        if self._provider.unreachable:
            return (Check("provider", "failed", "made unreachable", "leave fake.unreachable()"),)
        return (Check("provider", "ok", "in memory; it executes nothing"),)

    async def prepare(self, request: CreateRequest) -> str:
        """Choose an id. See `sandboxio.adapter.provision.Provisioner`."""
        self._provider.require_reachable()
        await anyio.lowlevel.checkpoint()
        if self._provider.create_error is not None:
            raise self._provider.create_error
        return f"fake-{uuid4().hex}"

    async def launch(self, request: CreateRequest, prepared: str) -> Launched:
        """Make the sandbox."""
        await anyio.lowlevel.checkpoint()
        provider = self._provider
        sandbox = VirtualSandbox(prepared, request, provider.clock, provider.servers, provider.denied)
        provider.sandboxes[sandbox.id] = sandbox
        provider.calls.append(FakeCall("create", sandbox.id, sandbox.policy))
        await anyio.sleep(provider.create_seconds)
        return self._launched(sandbox)

    async def discard(self, request: CreateRequest) -> None:
        """Remove what an interrupted creation made."""
        await anyio.lowlevel.checkpoint()
        for sandbox in self.sandboxes:
            if request.labels.items() <= sandbox.labels.items():
                self._provider.end(sandbox)

    async def find(self, sandbox_id: str) -> Launched:
        """A sandbox that runs, by its id."""
        await anyio.lowlevel.checkpoint()
        self._provider.require_reachable()
        sandbox = self._provider.sandboxes.get(sandbox_id)
        if sandbox is None:
            raise GoneError(f"there is no sandbox {sandbox_id[:80]}")
        self._provider.calls.append(FakeCall("connect", sandbox.id, sandbox.policy))
        return self._launched(sandbox)

    def translate(self, exc: Exception) -> SandboxError | None:
        """What an exception of the fake means."""
        return translate(exc)

    def _launched(self, sandbox: VirtualSandbox) -> Launched:
        remaining = sandbox.expires_at - self.clock()
        return Launched(
            sandbox.id,
            FakeDriver(self._provider, sandbox, self.capabilities),
            self.capabilities,
            self.isolation,
            Lifetime(remaining, timeout=sandbox.lifetime, clock=self.clock),
            sandbox.metadata,
        )

    def _held(self, sandbox: AsyncSandbox) -> VirtualSandbox:
        held = self._provider.sandboxes.get(sandbox.id)
        if held is None:
            raise ConfigurationError(
                f"the fake holds no running sandbox {sandbox.id[:80]}", hint="give one that it created"
            )
        return held
