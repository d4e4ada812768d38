"""The one gate in front of a driver: is the sandbox still there, and what does a failure mean."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

import anyio

from sandboxio.adapter.driver import Driver
from sandboxio.adapter.lifetime import Lifetime
from sandboxio.backends import backends_with
from sandboxio.errors import CapabilityNotSupported, ConnectError, SandboxError, SandboxGone
from sandboxio.models import Capability, IsolationTier
from sandboxio.redaction import Redactor
from sandboxio.release import bounded

__all__ = ["Guard", "Identity", "not_supported"]

_PROBE_SECONDS: Final = 5.0
_SETTLE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a sandbox is, in records, messages and reprs."""

    id: str
    backend: str
    isolation: IsolationTier
    metadata: Mapping[str, str]
    loosened: tuple[str, ...] = ()


def not_supported(message: str, flag: Capability) -> CapabilityNotSupported:
    """The error about a capability that is not declared, which names the backends that have it."""
    names = backends_with(flag)
    hint = (
        f"{flag.name} is declared by {', '.join(names)}, if the template has what it needs"
        if names
        else f"do without {flag.name}: no backend of this version declares it"
    )
    return CapabilityNotSupported(message, hint=hint)


class Guard:
    """Holds the driver of one sandbox, and knows what it can do and whether it has ended."""

    def __init__(
        self,
        driver: Driver,
        identity: Identity,
        capabilities: Capability,
        lifetime: Lifetime,
        redactor: Redactor,
    ) -> None:
        self.driver = driver
        self.capabilities = capabilities
        self.identity = identity
        self.lifetime = lifetime
        self.redactor = redactor
        self.ended: str | None = None

    @asynccontextmanager
    async def calls(self, doing: str) -> AsyncGenerator[None, None]:
        """Around calls to the driver: errors of ours pass, all others are explained.

        Raises:
            SandboxGone: The sandbox had ended, or ended meanwhile.
        """
        self.require_running()
        try:
            yield
        except Exception as exc:
            await self.explain(exc, doing)

    @property
    def running(self) -> bool:
        """Whether it may still run, as far as is known without asking."""
        return self.ended is None and not self.lifetime.expired()

    def require_running(self) -> None:
        """Raise `SandboxGone` if the sandbox is known to have ended."""
        if self.ended is None and self.lifetime.expired():
            self.ended = f"its lifetime of {self.lifetime.total:g} s is over"
        if self.ended is not None:
            raise SandboxGone(f"the {self._name} has ended: {self.ended}")

    def require(self, flag: Capability) -> None:
        """Raise `CapabilityNotSupported` if the sandbox does not declare `flag`."""
        if flag not in self.capabilities:
            raise not_supported(f"this {self.identity.backend} sandbox does not support {flag.name}", flag)

    async def explain(self, exc: Exception, doing: str) -> NoReturn:
        """Raise what a failure of the driver means."""
        error = exc if isinstance(exc, SandboxError) else self.driver.translate(exc)
        if isinstance(error, SandboxGone):
            self.ended = self.ended or "it is not there any more"
        elif error is None or isinstance(error, ConnectError):
            if await self.vanished():
                error = SandboxGone(f"the {self._name} ended while {doing}: {self.ended}")
            elif error is None:
                error = ConnectError(f"{doing} in the {self._name} failed with {type(exc).__name__}")
        self.redactor.error(error)
        if error is exc:
            raise exc
        self.redactor.error(exc)
        raise error from exc

    async def vanished(self, *, settle: bool = False) -> bool:
        """Ask the provider whether the sandbox is gone.

        Args:
            settle: Ask again after a moment, since a provider may need one to notice.
        """
        if self.ended is not None:
            return True
        for pause in (0.0, _SETTLE_SECONDS) if settle else (0.0,):
            await anyio.sleep(pause)
            try:
                with anyio.fail_after(_PROBE_SECONDS):
                    alive = await self.driver.alive()
            except Exception:  # an unreachable provider cannot say that the sandbox is gone
                return False
            if not alive:
                self.ended = "the provider no longer runs it"
                return True
        return False

    async def abandon(self, reason: str) -> str | None:
        """End a sandbox in which something runs that could not be ended by itself.

        Returns:
            Why the sandbox may still run, or `None` when it has ended.
        """
        self.ended = self.ended or reason
        try:
            done = await bounded(self.driver.destroy)
        except Exception as exc:
            return f"{reason}, and ending it failed with {type(exc).__name__}"
        return None if done else f"{reason}, and ending it took too long"

    @property
    def _name(self) -> str:
        return f"{self.identity.backend} sandbox {self.identity.id[:12]}"
