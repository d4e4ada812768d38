"""How long things may take: the creation, later calls, and the sandbox itself."""

from __future__ import annotations

import anyio
import pytest
from adapter_suite import create
from e2b_server.faults import Effect, Fault, Slow
from e2b_server.server import E2BServer

from sandboxio.errors import ExecutionTimeout
from sandboxio_e2b import E2BBackend

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("create_timeout", [10.0, 300.0])
async def test_the_time_for_a_creation_is_not_that_of_later_calls(
    e2b_server: E2BServer, create_timeout: float
) -> None:
    async with (
        await create(create_timeout=create_timeout) as sandbox,
        await E2BBackend().connect(sandbox.id) as connected,
    ):
        later = connected.native.connection_config.request_timeout
        assert sandbox.native.connection_config.request_timeout == later
        assert later not in (create_timeout, None)


async def test_a_call_may_take_longer_than_the_creation_might(e2b_server: E2BServer) -> None:
    async with await create(create_timeout=4) as sandbox:
        await sandbox.files.write("content", b"content")
        with anyio.fail_after(20), e2b_server.misbehave(Fault("list_dir", Slow(before=4.5), times=1)):
            assert [entry.name for entry in await sandbox.files.ls()] == ["content"]


@pytest.mark.parametrize("effect", [Slow(after=2.5), Slow(before=2.5)], ids=str)
async def test_a_slow_creation_shortens_the_lifetime_and_no_execution_outlives_the_sandbox(
    e2b_server: E2BServer, effect: Effect
) -> None:
    with e2b_server.misbehave(Fault("create", effect)):
        sandbox = await create(lifetime=8)
    async with sandbox:
        with anyio.fail_after(20), pytest.raises(ExecutionTimeout):
            await sandbox.run("setsid sleep 300 & sleep 300")
