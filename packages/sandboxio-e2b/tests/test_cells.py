"""Cells that are under way while their kernel is prepared: they run behind that, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import anyio
import pytest
from adapter_suite import require_fine
from e2b_code_interpreter import Context
from e2b_server.faults import Cut, Effect, Fault, OmitEnd, Refuse, Stall
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ConnectError, ExecutionTimeout
from sandboxio_e2b import interpreter
from sandboxio_e2b.interpreter import execute, run_to_end

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

NUMBER = "import resource; print(resource.getrlimit(10)[1])"
A_WHILE = 0.5
NAME = "one that stays"

# Behind how many requests of ours the one comes that is spoilt, and what has a cell prepared by it last.
NUMBERED, CHECKED, GIVEN_VARIABLES = "its number", "the check of it", "the variables"
STAGES = [NUMBERED, CHECKED, GIVEN_VARIABLES]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def context(sandbox: Sandbox) -> AsyncIterator[Context]:
    """A context of the SDK's, in the folder that commands start in."""
    folder = (await sandbox.run("pwd")).stdout.strip()
    opened = await sandbox.native.create_code_context(cwd=folder)
    yield opened
    await sandbox.native.remove_code_context(opened.id)


class Trace:
    """A file that code leaves where it has run."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self._sandbox = sandbox
        self._name = name
        self.code = f"open({name!r}, 'w').close()"

    async def is_left(self) -> bool:
        return await self._sandbox.files.exists(self._name)


@pytest.fixture
def trace(sandbox: Sandbox, request: pytest.FixtureRequest) -> Trace:
    """One of this test alone."""
    return Trace(sandbox, f"trace {abs(hash(request.node.nodeid))}")


async def test_the_part_that_is_sent_ahead_is_nothing_that_could_be_run() -> None:
    body = json.dumps({"code": "1", "context_id": "a"}).encode()
    turn = asyncio.Event()
    parts = interpreter._held(body, turn)
    with anyio.fail_after(5):
        ahead = await anext(parts)
    with pytest.raises(json.JSONDecodeError):
        json.loads(ahead)
    turn.set()
    assert ahead + b"".join([part async for part in parts]) == body


async def test_a_cell_runs_when_its_turn_has_come_and_not_before(
    e2b_server: E2BServer, sandbox: Sandbox, context: Context, trace: Trace
) -> None:
    turn = asyncio.Event()

    async def listen() -> list[str]:
        cell = execute(sandbox.native, context.id, trace.code, turn=turn)
        return [str(message["type"]) async for message in cell]

    before = e2b_server.requests["execute"]
    listening = asyncio.create_task(listen())
    await anyio.sleep(A_WHILE)
    assert e2b_server.requests["execute"] == before + 1, "it should be under way"
    assert not await trace.is_left()
    await run_to_end(sandbox.native, context.id, "'another cell of the context is not held up'")
    turn.set()
    with anyio.fail_after(10):
        assert (await listening)[-1] == "end_of_execution"
    assert await trace.is_left()


async def test_one_that_is_taken_back_never_runs(sandbox: Sandbox, context: Context, trace: Trace) -> None:
    turn = asyncio.Event()
    cell = execute(sandbox.native, context.id, trace.code, turn=turn)
    listening = asyncio.create_task(anext(cell))
    await anyio.sleep(A_WHILE)
    listening.cancel()
    await asyncio.wait({listening})
    turn.set()
    await anyio.sleep(A_WHILE)
    await run_to_end(sandbox.native, context.id, "'nothing waits in front of this'")
    assert not await trace.is_left()


@pytest.mark.parametrize("code", ["", "print('ü\u2028\\n\\'\"', '''\n''')", "#" + "x" * 300_000])
async def test_any_code_arrives_whole(sandbox: Sandbox, code: str) -> None:
    length = await sandbox.run_code(f"print(len({code!r}))")
    assert length.stdout == f"{len(code)}\n"
    assert (await sandbox.run_code(code)).ok


async def test_the_trace_is_left_by_code_that_runs(sandbox: Sandbox, trace: Trace) -> None:
    await sandbox.run_code(trace.code)
    assert await trace.is_left()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("effect", [Cut(after_messages=1), OmitEnd()], ids=["cut", "without an end"])
async def test_code_whose_kernel_could_not_be_prepared_does_not_run(
    e2b_server: E2BServer, sandbox: Sandbox, trace: Trace, effect: Effect, stage: str
) -> None:
    name, env, skip = await arranged(sandbox, stage)
    with anyio.fail_after(20), e2b_server.misbehave(Fault("execute", effect, times=1, skip=skip)):
        with pytest.raises(ConnectError):
            await sandbox.run_code(trace.code, context_id=name, env=env)
    await require_untouched(e2b_server, sandbox, trace)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("end", ["deadline", "one cancellation", "two cancellations"])
async def test_nor_does_code_whose_call_ends_while_its_kernel_is_prepared(
    e2b_server: E2BServer, sandbox: Sandbox, trace: Trace, end: str, stage: str
) -> None:
    name, env, skip = await arranged(sandbox, stage)
    before = e2b_server.requests["execute"]
    with anyio.fail_after(20), e2b_server.misbehave(Fault("execute", Stall(0), times=1, skip=skip)):
        timeout = A_WHILE if end == "deadline" else None
        call = asyncio.ensure_future(sandbox.run_code(trace.code, context_id=name, env=env, timeout=timeout))
        if end == "deadline":
            with pytest.raises(ExecutionTimeout):
                await call
        else:
            await anyio.sleep(A_WHILE)
            for _ in range(2 if end == "two cancellations" else 1):
                call.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await call
    assert e2b_server.requests["execute"] == before + skip + 2, "the code should have been under way"
    await require_untouched(e2b_server, sandbox, trace)


@pytest.mark.parametrize(
    "answer",
    [Refuse(408, at_once=True), Refuse(200, body='{"type": "end_of_execution"}\n', at_once=True)],
    ids=["refused", "said to have run"],
)
async def test_a_cell_that_is_answered_before_its_turn_is_sent_once_more(
    e2b_server: E2BServer, sandbox: Sandbox, answer: Effect
) -> None:
    before = e2b_server.requests["execute"]
    early = Fault("execute", answer, times=1, skip=1)
    with anyio.fail_after(20), e2b_server.misbehave(early):
        result = await sandbox.run_code("print('fine')")
    assert (result.exit_code, result.stdout) == (0, "fine\n")
    assert e2b_server.requests["execute"] == before + 3


async def test_one_whose_kernel_turns_out_to_be_another_is_taken_back_and_sent_anew(
    e2b_server: E2BServer, sandbox: Sandbox
) -> None:
    pid = await sandbox.run_code("import os; print(os.getpid())", context_id=NAME)
    assert (await sandbox.run(f"kill -9 {pid.stdout}")).ok
    await anyio.sleep(A_WHILE)
    before = e2b_server.requests["execute"]
    assert (await sandbox.run_code("print('fine')", context_id=NAME)).stdout == "fine\n"
    assert e2b_server.requests["execute"] == before + 4, "the check, the cell, the number, the cell"
    await forget(sandbox)


async def test_one_that_is_refused_in_its_turn_is_not(e2b_server: E2BServer, sandbox: Sandbox) -> None:
    before = e2b_server.requests["execute"]
    late = Fault("execute", Refuse(500), times=1, skip=1)
    with anyio.fail_after(20), e2b_server.misbehave(late), pytest.raises(ConnectError):
        await sandbox.run_code("print('fine')")
    assert e2b_server.requests["execute"] == before + 2


@pytest.mark.parametrize("name", [None, NAME])
async def test_an_answer_that_stays_open_behind_its_end_costs_the_next_cell_nothing(
    e2b_server: E2BServer, sandbox: Sandbox, name: str | None
) -> None:
    await sandbox.run_code("pass", context_id=NAME)
    with anyio.fail_after(20), e2b_server.misbehave(Fault("execute", Stall(2), times=1, skip=1)):
        assert (await sandbox.run_code("pass", context_id=name)).ok
        slow = await sandbox.run_code("import time; time.sleep(2); print('whole')", context_id=name)
    assert (slow.exit_code, slow.stdout, slow.stderr) == (0, "whole\n", "")
    await forget(sandbox)


async def test_many_cells_at_once_are_each_under_a_number_of_their_own(sandbox: Sandbox) -> None:
    numbers: list[str] = []

    async def cell(context_id: str | None) -> None:
        numbers.append((await sandbox.run_code(NUMBER, context_id=context_id)).stdout.strip())

    async with anyio.create_task_group() as group:
        for index in range(12):
            group.start_soon(cell, None if index % 2 else f"named {index}")
    assert all(number.isdecimal() and number.startswith("7") for number in numbers)
    assert len(set(numbers)) == len(numbers) == 12
    await forget(sandbox)


async def arranged(sandbox: Sandbox, stage: str) -> tuple[str | None, dict[str, str] | None, int]:
    """A context, variables, and how many requests come before the last one of the preparation."""
    if stage == CHECKED:
        await sandbox.run_code("pass", context_id=NAME)
        return NAME, None, 0
    return (None, {"A": "1"}, 1) if stage == GIVEN_VARIABLES else (None, None, 0)


async def require_untouched(e2b_server: E2BServer, sandbox: Sandbox, trace: Trace) -> None:
    """The code has not run, nothing of it waits to, and no context stays or is locked."""
    assert e2b_server.contexts(sandbox.id) == []
    assert not [task for task in asyncio.all_tasks() if "Cell" in repr(task)]
    await anyio.sleep(A_WHILE)
    assert not await trace.is_left()
    with anyio.fail_after(10):
        assert (await sandbox.run_code("print('fine')", context_id=NAME)).stdout == "fine\n"
    await forget(sandbox)
    await require_fine(e2b_server, sandbox)


async def forget(sandbox: Sandbox) -> None:
    for each in await sandbox.native.list_code_contexts():
        await sandbox.native.remove_code_context(each.id)
