"""The local E2B server over real machines, where a Docker engine is there to make them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest
from adapter_suite import create
from e2b_server.egress import unavailable
from e2b_server.machine import DockerMachines
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox

CANARY_NAME = "canary.test"


def host_problem() -> str | None:
    """Why this host cannot have a canary that machines are kept from, if it cannot."""
    return "ip is missing" if shutil.which("ip") is None else unavailable()


@pytest.fixture(scope="session")
def canary_address() -> Iterator[str]:
    """An address of this host that nobody else uses, for servers on ports 80 and 443.

    Where it cannot be had, tests that need it are skipped, and fail under `SBX_REQUIRE_DOCKER=1`.
    """
    if problem := host_problem():
        reason = f"egress cannot be filtered on this host: {problem}"
        if os.environ.get("SBX_REQUIRE_DOCKER") == "1":
            pytest.fail(f"{reason}, and SBX_REQUIRE_DOCKER=1 demands it", pytrace=False)
        pytest.skip(reason)
    address = f"198.51.100.{os.getpid() % 250 + 1}"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    yield address
    subprocess.run(["ip", "address", "delete", f"{address}/32", "dev", "lo"], check=True)


@pytest.fixture(scope="module")
def e2b_server(canary_address: str) -> Iterator[E2BServer]:
    """A server whose sandboxes know the canary by its name; it leaves nothing behind."""
    with (
        E2BServer(DockerMachines({CANARY_NAME: canary_address})) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environ.items():
            patch.setenv(name, value)
        yield server
        assert server.leftovers() == []


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str, e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    """One for all tests of a module, which survives each of them."""
    async with await create() as sandbox:
        yield sandbox
