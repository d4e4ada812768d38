"""What only an adapter's author can supply: looking behind the sandbox, and making things go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import anyio
import pytest

from sandboxio.models import Resources
from sandboxio.protocols import AsyncSandbox, Backend

__all__ = ["BehaviourProbes", "Canary", "missing_probe"]

_MARKER = "SBX_CONTRACT_MARKER"


@dataclass(frozen=True, slots=True)
class Canary:
    """A server outside the sandbox that counts what reaches it.

    Attributes:
        host: Its name or address, as a sandbox with open egress reaches it.
        port: Its TCP port.
        hits: How many connections it has accepted.
    """

    host: str
    port: int
    hits: Callable[[], int]


def missing_probe(name: str) -> NoReturn:
    """Skip the running test because its probe was not supplied."""
    pytest.skip(f"the probe {name} is not supplied")


class BehaviourProbes:
    """Overridden by the adapter's subclass. A probe that is missing skips its tests, by name.

    Each probe that is a context manager holds a condition for as long as it is entered.
    """

    marker_variable: ClassVar[str] = _MARKER
    """The environment variable by which `count_processes` knows a tree."""

    def marked(self, marker: str) -> dict[str, str]:
        """The environment that lets `count_processes` find an execution's tree."""
        return {self.marker_variable: marker}

    async def count_processes(self, sandbox: AsyncSandbox, marker: str) -> int:
        """How many processes of the sandbox run with `marked(marker)` in their environment."""
        pattern = f"{self.marker_variable}={marker}"
        found = await sandbox.run(f"grep -ls -- '{pattern}' /proc/[0-9]*/environ | wc -l")
        return int(found.stdout)

    async def count_sandboxes(self, backend: Backend, metadata: Mapping[str, str]) -> int:
        """How many things with these labels exist at the provider: sandboxes and what belongs to them."""
        missing_probe("count_sandboxes")

    async def pass_time(self, sandbox: AsyncSandbox, seconds: float) -> None:
        """Let so much of a sandbox's lifetime pass."""
        await anyio.sleep(seconds)

    async def expire(self, sandbox: AsyncSandbox) -> None:
        """Let the provider end the sandbox behind the library's back, as it does at a lifetime's end."""
        missing_probe("expire")

    def slow_create(self, backend: Backend) -> AbstractAsyncContextManager[None]:
        """While entered, every creation takes at least half a second."""
        missing_probe("slow_create")

    def failing_kill(self, sandbox: AsyncSandbox) -> AbstractAsyncContextManager[None]:
        """While entered, the provider refuses to end this sandbox."""
        missing_probe("failing_kill")

    def provider_failure(self, backend: Backend) -> AbstractAsyncContextManager[None]:
        """While entered, the provider cannot be reached, neither for creations nor by sandboxes."""
        missing_probe("provider_failure")

    def missing_credential(self) -> AbstractAsyncContextManager[tuple[Backend, str]]:
        """A backend that lacks its credential, with the name of the variable that would hold it."""
        missing_probe("missing_credential")

    async def provider_labels(self, sandbox: AsyncSandbox) -> Mapping[str, str]:
        """The labels that the provider stores beside the sandbox."""
        missing_probe("provider_labels")

    async def provider_view(self, sandbox: AsyncSandbox) -> str:
        """All that the provider tells about the sandbox, as text."""
        missing_probe("provider_view")

    async def applied_resources(self, sandbox: AsyncSandbox) -> Resources:
        """The caps that the provider enforces, `None` for what is not capped."""
        missing_probe("applied_resources")

    def canary(self) -> AbstractAsyncContextManager[Canary]:
        """A server outside of every sandbox that counts its connections."""
        missing_probe("canary")

    def hostile_archive(
        self, sandbox: AsyncSandbox, path: str, archive: bytes
    ) -> AbstractAsyncContextManager[None]:
        """While entered, reading the tree at `path` gives this tar archive, as hostile code might."""
        missing_probe("hostile_archive")
