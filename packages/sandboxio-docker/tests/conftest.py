"""A sandbox for a test, and what remains of it at the engine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Protocol

import anyio
import pytest

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker import DockerBackend, DockerConfig

PYTHON_IMAGE = os.environ.get("SBX_DOCKER_IMAGE") or "python:3.12-slim"
BUSYBOX_IMAGE = "sandboxio/busybox:test"
SHELLLESS_IMAGE = "sandboxio/noshell:test"


class Create(Protocol):
    """Creates a sandbox that is ended with the test."""

    def __call__(
        self,
        *,
        template: str | None = None,
        config: DockerConfig | None = None,
        resources: Resources | None = None,
        network: NetworkPolicy | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Coroutine[Any, Any, Sandbox]: ...


@pytest.fixture
async def create() -> AsyncIterator[Create]:
    made: list[Sandbox] = []

    async def make(
        *,
        template: str | None = None,
        config: DockerConfig | None = None,
        resources: Resources | None = None,
        network: NetworkPolicy | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Sandbox:
        sandbox = await DockerBackend(config).create(
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=None,
            timeout=timeout,
            metadata={"suite": "docker"},
        )
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        await sandbox.kill()


@pytest.fixture
async def sandbox(create: Create) -> Sandbox:
    return await create()


async def until(condition: Callable[[], Coroutine[Any, Any, bool]], seconds: float = 10) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(seconds):
        while not await condition():
            await anyio.sleep(0.05)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
