"""Cells that are under way while their kernel is prepared: they run behind that, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest
from adapter_suite import create, require_fine
from e2b_code_interpreter import Context
from e2b_server.faults import Cut, Effect, Fault, OmitEnd, Slow
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ConnectError, ExecutionTimeout
from sandboxio_e2b.interpreter import execute, run_to_end

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

LEAVE_A_TRACE = "open('trace', 'w').close()"
NUMBER = "import resource; print(resource.getrlimit(10)[1])"
A_WHILE = 0.5


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str, e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    """One that survives all of it."""
    async with await create() as sandbox:
        yield sandbox


@pytest.fixture
async def context(sandbox: Sandbox) -> AsyncIterator[Context]:
    """A context of the SDK's, in the folder that commands start in."""
    folder = (await sandbox.run("pwd")).stdout.strip()
    opened = await sandbox.native.create_code_context(cwd=folder)
    yield opened
    await sandbox.native.remove_code_context(opened.id)


async def left_a_trace(sandbox: Sandbox) -> bool:
    return (await sandbox.run(["rm", "trace"])).ok


async def test_a_cell_runs_when_its_turn_has_come_and_not_before(sandbox: Sandbox, context: Context) -> None:
    turn = asyncio.Event()

    async def listen() -> list[str]:
        cell = execute(sandbox.native, context.id, LEAVE_A_TRACE, turn=turn)
        return [str(message["type"]) async for message in cell]

    listening = asyncio.create_task(listen())
    await anyio.sleep(A_WHILE)
    assert not await left_a_trace(sandbox)
    await run_to_end(sandbox.native, context.id, "'another cell of the context is not held up'")
    turn.set()
    with anyio.fail_after(10):
        assert (await listening)[-1] == "end_of_execution"
    assert await left_a_trace(sandbox)


async def test_one_that_is_taken_back_never_runs(sandbox: Sandbox, context: Context) -> None:
    turn = asyncio.Event()
    cell = execute(sandbox.native, context.id, LEAVE_A_TRACE, turn=turn)
    listening = asyncio.create_task(anext(cell))
    await anyio.sleep(A_WHILE)
    listening.cancel()
    await asyncio.wait({listening})
    turn.set()
    await anyio.sleep(A_WHILE)
    await run_to_end(sandbox.native, context.id, "'nothing waits in front of this'")
    assert not await left_a_trace(sandbox)


@pytest.mark.parametrize("code", ["", "print('ü\u2028\\n\\'\"', '''\n''')", "#" + "x" * 300_000])
async def test_any_code_arrives_whole(sandbox: Sandbox, code: str) -> None:
    length = await sandbox.run_code(f"print(len({code!r}))")
    assert length.stdout == f"{len(code)}\n"
    assert (await sandbox.run_code(code)).ok


@pytest.mark.parametrize("effect", [Cut(after_messages=1), OmitEnd()], ids=["cut", "without an end"])
@pytest.mark.parametrize("skip", [0, 1], ids=["the number", "the variables"])
async def test_code_whose_kernel_could_not_be_prepared_does_not_run(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, skip: int
) -> None:
    with anyio.fail_after(20), e2b_server.misbehave(Fault("execute", effect, times=1, skip=skip)):
        with pytest.raises(ConnectError):
            await sandbox.run_code(LEAVE_A_TRACE, env={"A": "1"})
    assert e2b_server.contexts(sandbox.id) == []
    await anyio.sleep(A_WHILE)
    assert not await left_a_trace(sandbox)
    await require_fine(e2b_server, sandbox)


async def test_a_deadline_that_passes_while_a_kernel_is_prepared_leaves_nothing(
    e2b_server: E2BServer, sandbox: Sandbox
) -> None:
    with anyio.fail_after(20), e2b_server.misbehave(Fault("execute", Slow(after=5), times=1)):
        with pytest.raises(ExecutionTimeout):
            await sandbox.run_code(LEAVE_A_TRACE, timeout=A_WHILE)
    assert e2b_server.contexts(sandbox.id) == []
    assert not await left_a_trace(sandbox)
    await require_fine(e2b_server, sandbox)


async def test_many_cells_at_once_are_each_under_a_number_of_their_own(sandbox: Sandbox) -> None:
    numbers: list[str] = []

    async def cell(context_id: str | None) -> None:
        numbers.append((await sandbox.run_code(NUMBER, context_id=context_id)).stdout.strip())

    async with anyio.create_task_group() as group:
        for index in range(12):
            group.start_soon(cell, None if index % 2 else f"named {index}")
    assert all(number.isdecimal() and number.startswith("7") for number in numbers)
    assert len(set(numbers)) == len(numbers) == 12
    for each in await sandbox.native.list_code_contexts():
        await sandbox.native.remove_code_context(each.id)
