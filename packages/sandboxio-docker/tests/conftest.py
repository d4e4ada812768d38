"""A sandbox for a test, and what remains of it at the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anyio
import pytest
from docker_suite.images import Create

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker import DockerBackend, DockerConfig


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
