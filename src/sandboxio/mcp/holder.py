"""One sandbox, made when it is first needed, replaced when its lifetime is over, ended with its holder."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import anyio

import sandboxio
from sandboxio import AsyncSandbox, Backend, NetworkPolicy, PendingSandbox, SandboxGone
from sandboxio.mcp.options import Options

__all__ = ["Lease", "Profile", "SandboxHolder"]

LABELS: Final = {"made_by": "sandboxio.mcp"}

REPLACED: Final = (
    "The sandbox of earlier calls has ended ({why}). This is a new, empty one: "
    "files, installed packages and running processes of the old one are gone."
)


@dataclass(frozen=True, slots=True)
class Profile:
    """What every sandbox of this server is made with.

    Attributes:
        backend: Who makes it.
        network: What it may reach.
        lifetime: Seconds until it ends by itself.

    Example: `Profile.from_options(Options())`
    """

    backend: Backend
    network: NetworkPolicy
    lifetime: float

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Resolve the options. It does no I/O.

        Raises:
            ConfigurationError: The target or the network policy is malformed, or the target has a timeout.
            BackendNotFound, BackendNotInstalled: The target's backend is not there.

        Example: `Profile.from_options(Options(backend="docker://python:3.12-slim"))`
        """
        network = NetworkPolicy(egress=options.egress, allow=options.allow)
        return cls(sandboxio.backend_for(options.backend), network, options.timeout)

    @property
    def reaches_out(self) -> bool:
        """Whether code in a sandbox can reach anything outside it."""
        return self.network.egress == "allow" or bool(self.network.allow)

    def create(self) -> PendingSandbox:
        """A sandbox of this kind, to be entered. Errors are those of `sandboxio.create`.

        Example: `async with profile.create() as sandbox: ...`
        """
        return sandboxio.create(self.backend, network=self.network, timeout=self.lifetime, metadata=LABELS)


@dataclass(frozen=True, slots=True)
class Lease:
    """A sandbox for the length of one call.

    Attributes:
        sandbox: The sandbox.
        remaining: Seconds of its lifetime that are left, more or less.
        note: What the caller must be told about it; usually empty.

    Example: `async with holder.lease() as lease: await lease.sandbox.run("true")`
    """

    sandbox: AsyncSandbox
    remaining: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Held:
    context: PendingSandbox
    sandbox: AsyncSandbox
    expires: float


class SandboxHolder:
    """Holds at most one live sandbox. Calls may share it at the same time.

    Args:
        profile: What it is made with.
        clock: Seconds on a clock that never goes back.

    Example:
        async with SandboxHolder(profile) as holder, holder.lease() as lease:
            await lease.sandbox.run(["true"])
    """

    def __init__(self, profile: Profile, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._profile = profile
        self._clock = clock
        self._changing = anyio.Lock()
        self._held: _Held | None = None
        self._making: anyio.CancelScope | None = None
        self._untold = ""
        self._closed = False

    @property
    def profile(self) -> Profile:
        """What its sandboxes are made with."""
        return self._profile

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[Lease, None]:
        """The sandbox, made now if there is none or the last one's lifetime is over.

        A sandbox that turns out to be gone is given up, so the next lease makes a new one. Nothing is tried
        twice: what was cut off may have had effects. That there is a new one is noted in every lease until
        `told` is called.

        Raises:
            SandboxError: It could not be made; nothing is left behind. `SandboxGone` when the holder is
                closed, or gets closed before the sandbox is there.
        """
        async with self._changing:
            held = self._held
            if held is not None and self._clock() >= held.expires:
                await self._give_up(held, f"its lifetime of {self._profile.lifetime:g} s is over")
                held = None
            if held is None:
                held = await self._make()
            note = self._untold
        try:
            yield Lease(held.sandbox, max(0.0, held.expires - self._clock()), note)
        except SandboxGone as exc:
            async with self._changing:
                await self._give_up(held, exc.message)
            raise

    def told(self, note: str) -> None:
        """Say that the caller of a lease has been answered with its note, so that it is not repeated.

        Example: `holder.told(lease.note)`
        """
        if note is self._untold:  # and not that of a later loss, which can read the same
            self._untold = ""

    async def close(self) -> None:
        """End the sandbox, if there is one, whatever is being cancelled. One that is being made is given up.

        Bounded by `SBX_TEARDOWN_GRACE`, once the backend has let go of a creation: what it has begun to
        launch is waited for, as long as its own bound on that allows, since it would be left behind else.
        """
        self._closed = True
        if self._making is not None:
            self._making.cancel()
        with anyio.CancelScope(shield=True):
            async with self._changing:
                if self._held is not None:
                    await self._give_up(self._held, "the session is over")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _make(self) -> _Held:
        if not self._closed:
            with anyio.CancelScope() as self._making:  # for `close`
                context = self._profile.create()
                sandbox = await context.__aenter__()
                self._held = _Held(context, sandbox, self._clock() + self._profile.lifetime)
                return self._held
        raise SandboxGone("the session is over", hint="open a new session")

    async def _give_up(self, held: _Held, why: str) -> None:
        if self._held is not held:
            return  # another call has seen to it
        self._held = None
        self._untold = REPLACED.format(why=why)
        await held.context.__aexit__(None, None, None)
