"""Code contexts that are lost, cut off or left: none stays locked or behind, and each loss is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest
from adapter_suite import create, require_fine
from e2b_server.faults import Fault, Refuse, Slow
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ExecutionTimeout
from sandboxio_e2b import E2BBackend

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

VARIABLES = [None, {"TOKEN": "it's"}]
NUMBER = "import os, resource; print(os.getpid(), resource.getrlimit(10)[1])"
ENDLESS = (
    "import subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\ntime.sleep(300)"
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def context(sandbox: Sandbox, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The name of a context that no other test has, with `x` in it."""
    name = f"context of {request.node.name}"
    await sandbox.run_code("x = 1", context_id=name)
    yield name
    for each in await sandbox.native.list_code_contexts():
        await sandbox.native.remove_code_context(each.id)


async def require_lost_once(sandbox: Sandbox, context: str, env: dict[str, str] | None = None) -> None:
    """The next cell runs, without what the context held, and says so; the one after it says nothing."""
    told = await sandbox.run_code("print('x' in globals()); x = 2", context_id=context, env=env)
    assert (told.exit_code, told.stdout) == (0, "False\n")
    assert context in told.stderr
    silent = await sandbox.run_code("print(x)", context_id=context, env=env)
    assert (silent.exit_code, silent.stdout, silent.stderr) == (0, "2\n", "")


@pytest.mark.parametrize("env", VARIABLES, ids=["without variables", "with variables"])
async def test_a_context_that_the_provider_has_dropped_is_opened_anew_and_says_so_once(
    sandbox: Sandbox, context: str, env: dict[str, str] | None
) -> None:
    for each in await sandbox.native.list_code_contexts():
        await sandbox.native.remove_code_context(each.id)
    with anyio.fail_after(20):
        await require_lost_once(sandbox, context, env)


@pytest.mark.parametrize("env", VARIABLES, ids=["without variables", "with variables"])
async def test_so_is_one_that_it_forgets_while_a_cell_is_prepared(
    e2b_server: E2BServer, sandbox: Sandbox, context: str, env: dict[str, str] | None
) -> None:
    gone = Fault("execute", Refuse(404, "Context not found"), times=1)
    with anyio.fail_after(20), e2b_server.misbehave(gone):
        await require_lost_once(sandbox, context, env)


@pytest.mark.parametrize("env", VARIABLES, ids=["without variables", "with variables"])
async def test_a_kernel_that_dies_between_two_cells_says_so_once_and_its_successor_is_ended_whole(
    e2b_server: E2BServer, sandbox: Sandbox, context: str, env: dict[str, str] | None
) -> None:
    with anyio.fail_after(30):
        kernel, before = (await sandbox.run_code(NUMBER, context_id=context)).stdout.split()
        await sandbox.run(f"kill -9 {kernel}")
        while (await sandbox.run(f"kill -0 {kernel}")).exit_code == 0:
            await anyio.sleep(0.02)
        await require_lost_once(sandbox, context, env)
        _, after = (await sandbox.run_code(NUMBER, context_id=context)).stdout.split()
        assert len(after) == len(before) == 19
        assert int(after) < int(before)
        with pytest.raises(ExecutionTimeout):
            await sandbox.run_code(ENDLESS, context_id=context, timeout=1)
        await require_fine(e2b_server, sandbox)


@pytest.mark.parametrize("effect", [Slow(before=0.5), Slow(after=0.5)], ids=str)
@pytest.mark.parametrize("operation", ["open_context", "execute"])
@pytest.mark.parametrize("name", [None, "a new one"])
async def test_two_native_cancellations_leave_no_context_and_lock_none(
    e2b_server: E2BServer, sandbox: Sandbox, operation: str, effect: Slow, name: str | None
) -> None:
    for pause in (0.0, 0.1, 0.7):  # before, while and after what was begun is undone
        asked = e2b_server.requests[operation]
        with anyio.fail_after(30):
            with e2b_server.misbehave(Fault(operation, effect)):
                task = asyncio.create_task(
                    sandbox.run_code("import time; time.sleep(300)", context_id=name, env={"A": "b"})
                )
                while e2b_server.requests[operation] == asked:
                    await asyncio.sleep(0.01)
                while effect.after and not e2b_server.contexts(sandbox.id):  # it is done and not yet answered
                    await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.sleep(pause)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert e2b_server.contexts(sandbox.id) == []
            assert (await sandbox.run_code("print('fine')", context_id=name)).stdout == "fine\n"
            for each in await sandbox.native.list_code_contexts():
                await sandbox.native.remove_code_context(each.id)
    await require_fine(e2b_server, sandbox)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancellation_while_a_context_is_closed_is_not_swallowed(
    e2b_server: E2BServer, sandbox: Sandbox, times: int
) -> None:
    closed = e2b_server.requests["close_context"]
    with anyio.fail_after(20), e2b_server.misbehave(Fault("close_context", Slow(before=1))):
        task = asyncio.create_task(sandbox.run_code("print('done')"))
        while e2b_server.requests["close_context"] == closed:
            await asyncio.sleep(0.02)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert e2b_server.contexts(sandbox.id) == []


async def test_the_contexts_of_a_connected_handle_go_when_it_is_left_and_no_others(
    e2b_server: E2BServer, sandbox: Sandbox, context: str
) -> None:
    before = {each.id for each in e2b_server.contexts(sandbox.id)}
    async with await E2BBackend().connect(sandbox.id) as connected:
        for name in (context, "one more"):
            told = await connected.run_code("print('x' in globals())", context_id=name)
            assert told.stdout == "False\n"
        assert len(e2b_server.contexts(sandbox.id)) == len(before) + 2
    assert {each.id for each in e2b_server.contexts(sandbox.id)} == before
    assert (await sandbox.run_code("print(x)", context_id=context)).stdout == "1\n"


async def test_variables_and_secrets_reach_code_of_other_languages(e2b_server: E2BServer) -> None:
    secret = "s3cret 'quoted' value"
    async with await create(env={"OF_SANDBOX": "a\nb"}, secrets={"TOKEN": secret}) as sandbox:
        code = 'test "$TOKEN" = "s3cret \'quoted\' value" && echo "$OF_SANDBOX|$GIVEN|${BASH##*/}"'
        result = await sandbox.run_code(code, language="bash", env={"GIVEN": "it's"})
        assert (result.exit_code, result.stdout) == (0, "a\nb|it's|bash\n")
        with pytest.raises(ExecutionTimeout):
            await sandbox.run_code("setsid sleep 300 & sleep 300", language="bash", timeout=0.7)
        assert e2b_server.contexts(sandbox.id) == []
        await require_fine(e2b_server, sandbox)
