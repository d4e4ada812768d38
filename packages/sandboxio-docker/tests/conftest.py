"""A sandbox for a test, and what remains of it at the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anyio
import pytest
from docker_suite.factory import SandboxFactory

from sandboxio.adapter.sandbox import Sandbox


@pytest.fixture
async def create() -> AsyncIterator[SandboxFactory]:
    factory = SandboxFactory()
    yield factory
    await factory.kill_all()


@pytest.fixture
async def sandbox(create: SandboxFactory) -> Sandbox:
    return await create()


async def until(condition: Callable[[], Coroutine[Any, Any, bool]], seconds: float = 10) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(seconds):
        while not await condition():
            await anyio.sleep(0.05)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
