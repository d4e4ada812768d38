"""A backend that notes what it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import anyio

from sandboxio import Backend, ConfigurationError, IsolationTier


@dataclass(frozen=True)
class RecordingConfig:
    backend_name: ClassVar[str] = "recording"
    template: str | None = None
    size: str = "small"

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> RecordingConfig:
        if unknown := set(params) - {"size"}:
            raise ConfigurationError(f"unknown parameter {min(unknown)}")
        return cls(template, **params)


class RecordingSandbox:
    """Only what `create` and `connect` touch, noting what happens to it."""

    def __init__(self, backend: RecordingBackend, *, owned: bool) -> None:
        self.backend = backend.name
        self.id = "sandbox-1"
        self.isolation = backend.given_isolation
        self._log = backend.log
        self._owned = owned
        self._kill = backend.kill
        self._enter = backend.enter

    async def kill(self) -> None:
        self._log.append("kill")
        await self._kill()

    async def __aenter__(self) -> Self:
        self._log.append("enter")
        await self._enter()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._log.append("exit")
        if self._owned:
            await self.kill()


class RecordingBackend:
    """Notes what it is asked for."""

    config_type = RecordingConfig
    made: ClassVar[list[RecordingBackend]] = []

    def __init__(self, config: RecordingConfig) -> None:
        self.config = config
        self.name = "recording"
        self.isolation = IsolationTier.CONTAINER
        self.given_isolation = IsolationTier.CONTAINER
        self.log: list[str] = []
        self.request: dict[str, Any] = {}
        self.made.append(self)

    async def kill(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def enter(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def create(self, **request: Any) -> RecordingSandbox:
        self.log.append("create")
        self.request = request
        await anyio.lowlevel.checkpoint()
        return RecordingSandbox(self, owned=True)

    async def connect(self, sandbox_id: str) -> RecordingSandbox:
        self.log.append(f"connect {sandbox_id}")
        await anyio.lowlevel.checkpoint()
        return RecordingSandbox(self, owned=False)


class VerifyingBackend(RecordingBackend):
    """Learns its tier from its provider."""

    verified = IsolationTier.GVISOR

    async def verify_isolation(self) -> IsolationTier:
        self.log.append("verify")
        return self.verified


def the_backend() -> RecordingBackend:
    (backend,) = RecordingBackend.made
    return backend


def ready_backend(kind: type[RecordingBackend] = RecordingBackend) -> tuple[RecordingBackend, Backend]:
    backend = kind(RecordingConfig())
    return backend, cast("Backend", backend)
