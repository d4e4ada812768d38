"""The local E2B server over stand-in machines, and a sandbox on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest
from e2b_code_interpreter import AsyncSandbox
from e2b_server.server import E2BServer
from stand_in_machine import Boots, StandInMachine


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> Boots:
    return Boots(tmp_path_factory.mktemp("machines"))


@pytest.fixture(scope="module")
def server(boots: Boots) -> Iterator[E2BServer]:
    with E2BServer(boots) as server:
        yield server
    assert [each.home for each in boots.machines if not each.is_down] == []


@pytest.fixture
async def sandbox(server: E2BServer) -> AsyncIterator[AsyncSandbox]:
    sandbox = await AsyncSandbox.create(timeout=60, retries=0, **server.connection)
    yield sandbox
    await AsyncSandbox.kill(sandbox.sandbox_id, **server.connection)


@pytest.fixture
def machine(sandbox: AsyncSandbox, boots: Boots) -> StandInMachine:
    return boots.last


@pytest.fixture
async def api(server: E2BServer) -> AsyncIterator[httpx.AsyncClient]:
    """The control plane without the SDK."""
    async with _client(server, {"x-api-key": server.api_key}) as client:
        yield client


@pytest.fixture
async def made(api: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    """What the control plane answered when it made a sandbox."""
    made = (await api.post("/v2/sandboxes", json={"templateID": "base", "timeout": 60})).json()
    yield made
    await api.delete(f"/sandboxes/{made['sandboxID']}")


@pytest.fixture
async def envd(server: E2BServer, made: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    """That sandbox's envd without the SDK."""
    headers = {
        "e2b-sandbox-id": made["sandboxID"],
        "e2b-sandbox-port": "49983",
        "x-access-token": made["envdAccessToken"],
        "connect-protocol-version": "1",
    }
    async with _client(server, headers) as client:
        yield client


def _client(server: E2BServer, headers: dict[str, str]) -> httpx.AsyncClient:
    # Loading certificates takes longer than most of these tests, and nothing here is encrypted.
    return httpx.AsyncClient(base_url=server.url, headers=headers, verify=False)


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.01)


@pytest.fixture(name="until")
def _until() -> Callable[..., object]:
    return until
