"""The provider behind a fake: what it holds, what it was asked, and how it is made to fail."""

from __future__ import annotations

from sandboxio.errors import (
    CapabilityNotSupported,
    ConnectError,
    FileSystemError,
    PathNotFound,
    SandboxError,
    SandboxGone,
)
from sandboxio.testing.fake.clock import VirtualClock
from sandboxio.testing.fake.machine.calls import NotSimulatedError
from sandboxio.testing.fake.network import Denial, FakeServer
from sandboxio.testing.fake.sandbox import VirtualSandbox
from sandboxio.testing.fake.scripted import FakeCall, Scripts

__all__ = ["GoneError", "Provider", "UnreachableError", "translate"]


class UnreachableError(Exception):
    """The fake's provider does not answer."""


class GoneError(Exception):
    """The fake's provider has no such sandbox."""


class Provider:
    """All that the sandboxes of one fake share."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.clock.watch(self._end_expired)
        self.sandboxes: dict[str, VirtualSandbox] = {}
        self.servers: dict[tuple[str, int], FakeServer] = {}
        self.scripts = Scripts()
        self.calls: list[FakeCall] = []
        self.denials: list[Denial] = []
        self.unreachable = False
        self.create_error: Exception | None = None
        self.create_seconds = 0.0
        self.unkillable: set[str] = set()

    def require_reachable(self) -> None:
        """Fail as a provider that does not answer.

        Raises:
            UnreachableError: It is made not to.
        """
        if self.unreachable:
            raise UnreachableError("the fake provider does not answer")

    def require_running(self, sandbox: VirtualSandbox) -> None:
        """Fail as a provider does for a sandbox that has ended.

        Raises:
            UnreachableError: The provider does not answer.
            GoneError: It has ended.
        """
        self.require_reachable()
        if sandbox.ended:
            raise GoneError(f"there is no sandbox {sandbox.id}")

    def end(self, sandbox: VirtualSandbox) -> None:
        """End a sandbox and forget it."""
        self.sandboxes.pop(sandbox.id, None)
        sandbox.end()

    def denied(self, sandbox_id: str, host: str, port: int) -> None:
        """Take down a connection that a policy refused."""
        self.denials.append(Denial(sandbox_id, host, port))

    def _end_expired(self) -> None:
        for sandbox in list(self.sandboxes.values()):
            if sandbox.expires_at <= self.clock():
                self.end(sandbox)


def translate(exc: Exception) -> SandboxError | None:
    """The error of the library that an exception of the fake means."""
    if isinstance(exc, UnreachableError):
        return ConnectError(str(exc))
    if isinstance(exc, GoneError):
        return SandboxGone(str(exc))
    if isinstance(exc, NotSimulatedError):
        return CapabilityNotSupported(
            f"the fake does not simulate {exc}",
            hint="script the response: fake.on_run(…) for a command, fake.on_run_code(…) for code",
        )
    if isinstance(exc, FileNotFoundError):
        return PathNotFound(_about(exc))
    if isinstance(exc, OSError):
        return FileSystemError(_about(exc))
    return None


def _about(exc: OSError) -> str:
    return f"{str(exc.filename)[:200]!r}: {exc.strerror}" if exc.filename else str(exc)
