"""An allow list on E2B: only the names on it, without a name server that would carry data out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from e2b_server.ports import Egress
from e2b_server.server import E2BServer
from e2b_server.state import SandboxRecord

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import CapabilityNotSupported
from sandboxio.network import NetworkPolicy
from sandboxio_e2b import E2BBackend, E2BConfig

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def created(policy: NetworkPolicy, config: E2BConfig | None = None) -> AsyncIterator[Sandbox]:
    backend = E2BBackend(config)
    sandbox = await backend.create(
        template=None, resources=None, network=policy, env=None, secrets=None, timeout=60, metadata=None
    )
    async with sandbox:
        yield sandbox


def record_of(server: E2BServer, sandbox: Sandbox) -> SandboxRecord:
    (record,) = [record for record in server.sandboxes() if record.id == sandbox.id]
    return record


async def test_a_list_opens_its_names_and_no_name_server(e2b_server: E2BServer) -> None:
    async with created(NetworkPolicy(allow=("a.test", "b.test"))) as sandbox:
        assert record_of(e2b_server, sandbox).egress == Egress(open=False, hosts=("a.test", "b.test"))


async def test_a_listed_name_is_found_without_a_name_server(e2b_server: E2BServer) -> None:
    async with created(NetworkPolicy(allow=("a.test", "b.test"))) as sandbox:
        found = await sandbox.run("getent ahostsv4 b.test; getent ahostsv4 localhost")
    assert found.stdout.startswith("192.0.2.1 ")
    assert "127.0.0.1" in found.stdout


async def test_a_list_with_a_wildcard_is_refused_and_creates_nothing(e2b_server: E2BServer) -> None:
    before = e2b_server.requests["any"]
    with pytest.raises(CapabilityNotSupported, match="name server") as caught:
        async with created(NetworkPolicy(allow=("*.test",))):
            pass
    assert "allow_dns=True" in caught.value.hint
    assert e2b_server.requests["any"] == before


async def test_a_name_server_can_be_opened_and_shows(e2b_server: E2BServer) -> None:
    async with created(NetworkPolicy(allow=("*.test",)), E2BConfig(allow_dns=True)) as sandbox:
        egress = record_of(e2b_server, sandbox).egress
        assert egress == Egress(open=False, hosts=("*.test",), addresses=("8.8.8.8",))
        assert "allow_dns=True" in repr(sandbox)


@pytest.mark.parametrize(
    "policy", [NetworkPolicy(), NetworkPolicy("allow"), NetworkPolicy(allow=("a.test",))]
)
async def test_ports_of_the_sandbox_are_not_public(e2b_server: E2BServer, policy: NetworkPolicy) -> None:
    async with created(policy) as sandbox:
        assert record_of(e2b_server, sandbox).network["allowPublicTraffic"] is False
