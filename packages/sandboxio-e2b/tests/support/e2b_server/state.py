"""The sandboxes there are: their making, their lifetimes and their end."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from .ports import Booting, Egress, Machine

__all__ = ["Cloud", "Order", "Sandbox", "SandboxRecord", "State"]

State = Literal["booting", "running", "stopping", "stuck"]

_log = logging.getLogger("e2b_server")


@dataclass(frozen=True)
class Order:
    """A sandbox as it was asked for; `lifetime` in seconds."""

    template: str
    lifetime: int
    metadata: Mapping[str, str]
    envs: Mapping[str, str]
    network: Mapping[str, Any]
    allow_internet_access: bool | None
    egress: Egress


@dataclass(frozen=True)
class SandboxRecord:
    """What a test may know of a sandbox, as of the moment it asked.

    Attributes:
        network: The rules as they were last requested, by the wire's names.
        state: `booting`, `running`, `stopping`, or `stuck` when the machine could not be shut down.
        ends_at: When its lifetime is over.
    """

    id: str
    template: str
    metadata: Mapping[str, str]
    envs: Mapping[str, str]
    network: Mapping[str, Any]
    allow_internet_access: bool | None
    egress: Egress
    state: State
    started_at: datetime
    ends_at: datetime


@dataclass
class Sandbox:
    """A sandbox and what is going on in it. Touched by the server's event loop only."""

    id: str
    template: str
    metadata: Mapping[str, str]
    envs: Mapping[str, str]
    network: Mapping[str, Any]
    allow_internet_access: bool | None
    egress: Egress
    started_at: datetime
    ends_at: datetime
    envd_token: str = field(default_factory=lambda: secrets.token_hex(20))
    traffic_token: str | None = None
    state: State = "booting"
    default_contexts: dict[str, str] = field(default_factory=dict)
    opening_context: asyncio.Lock = field(default_factory=asyncio.Lock)
    exchanges: dict[asyncio.Task[Any], asyncio.Transport] = field(default_factory=dict)
    errands: set[asyncio.Task[Any]] = field(default_factory=set)
    over: asyncio.TimerHandle | None = None
    booted: Machine | None = None
    down: asyncio.Task[None] | None = None

    @property
    def machine(self) -> Machine:
        """The machine, which a running sandbox always has."""
        assert self.booted is not None
        return self.booted

    def run_errand(self, errand: Coroutine[Any, Any, None]) -> None:
        """Start something that outlives the request it comes from and ends with the sandbox."""
        task = asyncio.create_task(errand)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    def break_off(self) -> None:
        """Cut every connection that is being served, as the loss of a machine does."""
        for task, connection in list(self.exchanges.items()):
            connection.abort()
            task.cancel()
        for task in list(self.errands):
            task.cancel()

    def record(self) -> SandboxRecord:
        """A copy for other threads."""
        return SandboxRecord(
            id=self.id,
            template=self.template,
            metadata=dict(self.metadata),
            envs=dict(self.envs),
            network=dict(self.network),
            allow_internet_access=self.allow_internet_access,
            egress=self.egress,
            state=self.state,
            started_at=self.started_at,
            ends_at=self.ends_at,
        )


class Cloud:
    """All sandboxes of one server. Every method runs on the server's event loop."""

    def __init__(self, boot: Booting, *, templates: Collection[str], longest_lifetime: int) -> None:
        self.templates = frozenset(templates)
        self.longest_lifetime = longest_lifetime
        self._boot = boot
        self._sandboxes: dict[str, Sandbox] = {}
        self._births: set[asyncio.Task[Sandbox]] = set()
        self._closing = False

    @property
    def sandboxes(self) -> list[Sandbox]:
        """Those that have a machine, or will have one, oldest first."""
        return list(self._sandboxes.values())

    def running(self, sandbox_id: str) -> Sandbox | None:
        """The sandbox, if it can be used."""
        sandbox = self._sandboxes.get(sandbox_id)
        return sandbox if sandbox is not None and sandbox.state == "running" else None

    def create(self, order: Order) -> asyncio.Task[Sandbox]:
        """Begin to make a sandbox. It is made to the end whether or not somebody waits for it."""
        now = datetime.now(UTC)
        public = order.network.get("allowPublicTraffic") is not False
        sandbox = Sandbox(
            id=f"i{secrets.token_hex(10)}",
            template=order.template,
            metadata=order.metadata,
            envs=order.envs,
            network=order.network,
            allow_internet_access=order.allow_internet_access,
            egress=order.egress,
            started_at=now,
            ends_at=now + timedelta(seconds=order.lifetime),
            traffic_token=None if public else secrets.token_hex(20),
        )
        self._sandboxes[sandbox.id] = sandbox
        birth = asyncio.create_task(self._bring_up(sandbox, order.lifetime))
        self._births.add(birth)
        birth.add_done_callback(self._births.discard)
        return birth

    async def _bring_up(self, sandbox: Sandbox, lifetime: int) -> Sandbox:
        try:
            if self._closing:
                raise RuntimeError("the server is being closed")
            # The machine's own lifetime is a backstop only: this server may prolong it as far as this.
            sandbox.booted = await self._boot(
                template=sandbox.template,
                envs=sandbox.envs,
                egress=sandbox.egress,
                lifetime=float(self.longest_lifetime + 30),
            )
        except BaseException:
            del self._sandboxes[sandbox.id]
            raise
        sandbox.state = "running"
        sandbox.started_at = datetime.now(UTC)
        self.live_for(sandbox, lifetime)
        return sandbox

    def live_for(self, sandbox: Sandbox, seconds: int) -> None:
        """Let it end this long from now, or when no sandbox may live on, if that is sooner."""
        limit = sandbox.started_at + timedelta(seconds=self.longest_lifetime)
        now = datetime.now(UTC)
        sandbox.ends_at = min(now + timedelta(seconds=seconds), limit)
        if sandbox.over is not None:
            sandbox.over.cancel()
        delay = max(0.0, (sandbox.ends_at - now).total_seconds())
        sandbox.over = asyncio.get_running_loop().call_later(delay, self.begin_end, sandbox)

    def begin_end(self, sandbox: Sandbox) -> asyncio.Task[None]:
        """Make it unreachable now, and shut its machine down in a task."""
        if sandbox.down is None:
            sandbox.state = "stopping"
            if sandbox.over is not None:
                sandbox.over.cancel()
            sandbox.break_off()
            sandbox.down = asyncio.create_task(self._take_down(sandbox))
        return sandbox.down

    async def _take_down(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.machine.shutdown()
        except Exception:
            _log.exception("the machine of sandbox %s was not shut down", sandbox.id)
            sandbox.state = "stuck"
        else:
            del self._sandboxes[sandbox.id]

    async def settle(self) -> None:
        """Wait until no machine is being booted or shut down."""
        while pending := [*self._births, *(each.down for each in self.sandboxes if _is_ending(each))]:
            await asyncio.wait([task for task in pending if task is not None])

    async def close(self) -> None:
        """Shut every machine down, the ones that are still being booted included."""
        self._closing = True
        if self._births:
            await asyncio.wait(set(self._births))
        for sandbox in self.sandboxes:
            self.begin_end(sandbox)
        await self.settle()


def _is_ending(sandbox: Sandbox) -> bool:
    return sandbox.down is not None and not sandbox.down.done()
