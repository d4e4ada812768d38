"""A machine for the tests of a module, and a code context in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from e2b_server.ports import Machine
from machine_suite import Canary, boot


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def machine() -> AsyncIterator[Machine]:
    booted = await boot(envs={"OF_MACHINE": "yes", "KEPT": "old"})
    yield booted
    await booted.shutdown()


@pytest.fixture
async def context(machine: Machine) -> AsyncIterator[str]:
    made = await machine.kernels.open("python", None)
    yield made.id
    await machine.kernels.close(made.id)


@pytest.fixture
async def canary(canary_address: str) -> AsyncIterator[Canary]:
    made = Canary(canary_address)
    servers = [await asyncio.start_server(made.serve, canary_address, port) for port in (80, 443, 8080)]
    yield made
    for server in servers:
        server.close()
