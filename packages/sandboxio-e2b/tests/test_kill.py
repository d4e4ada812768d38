"""An execution's end is the end of its whole tree, also on a bad day of the service, and of nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from adapter_suite import create, require_fine, sleepers
from e2b_server.faults import Cut, Effect, Fault, Lose, OmitEnd, Refuse, Slow
from e2b_server.server import E2BServer
from starlette.types import ASGIApp, Receive, Scope, Send

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ConnectError, ExecutionTimeout, SandboxGone

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

TREE = "setsid sleep 300 & sleep 300 & sleep 300"
ENDLESS = (
    "import subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\ntime.sleep(300)"
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox(e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    """One for each test, so that a test that loses it spoils no other. It knows that there is no root."""
    async with await create() as sandbox:
        with pytest.raises(ExecutionTimeout):
            await sandbox.run("sleep 300", timeout=0.2)
        yield sandbox


@dataclass(frozen=True)
class Late:
    """An answer whose messages, but for the first ones, come so many seconds late."""

    seconds: float
    in_time: int = 1

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Count, and wait."""
        messages = 0

        async def delaying(message: Any) -> None:
            nonlocal messages
            messages += bool(message.get("body"))
            if messages > self.in_time:
                await asyncio.sleep(self.seconds)
            await send(message)

        await app(scope, receive, delaying)


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault("start", Refuse(status), times=times, skip=1) for status in (429, 503) for times in (1, 3)),
        Fault("start", Refuse(500), times=1, skip=1),
        Fault("start", Lose(), times=1, skip=1),
        Fault("start", Cut(after_messages=1), times=1, skip=1),
        Fault("start", OmitEnd(), times=1, skip=1),
        Fault("start", Slow(before=1), times=1, skip=1),
        Fault("start", Slow(after=1), times=1, skip=1),
        Fault("start", Late(3), times=1),
        Fault("start", OmitEnd(), times=1),
    ],
    ids=lambda fault: f"{fault.effect} {fault.times}x after {fault.skip}",
)
async def test_a_command_is_ended_although_the_service_falters(
    e2b_server: E2BServer, sandbox: Sandbox, fault: Fault
) -> None:
    with anyio.fail_after(20):
        with e2b_server.misbehave(fault), pytest.raises(ExecutionTimeout):
            await sandbox.run(TREE, timeout=0.7)
        await require_fine(e2b_server, sandbox)


@pytest.mark.parametrize("times", [1, 2, 4])
async def test_a_command_whose_start_the_service_refuses_for_a_while_leaves_the_sandbox_running(
    e2b_server: E2BServer, sandbox: Sandbox, times: int
) -> None:
    with anyio.fail_after(20):
        with e2b_server.misbehave(Fault("rpc", Refuse(503), times=times)), pytest.raises(ConnectError):
            await sandbox.run(TREE)
        await require_fine(e2b_server, sandbox)


@pytest.mark.parametrize("status", [503, 429])
async def test_a_cell_is_ended_although_the_service_refuses_commands_for_a_while(
    e2b_server: E2BServer, sandbox: Sandbox, status: int
) -> None:
    with anyio.fail_after(20):
        with e2b_server.misbehave(Fault("rpc", Refuse(status), times=2)), pytest.raises(ExecutionTimeout):
            await sandbox.run_code(ENDLESS, timeout=1.5)
        await require_fine(e2b_server, sandbox)
        assert e2b_server.contexts(sandbox.id) == []


BAD_ENDS: list[Effect] = [Refuse(500), Refuse(503), Refuse(404), Lose(), Slow(before=8), Slow(after=8)]


@pytest.mark.parametrize("effect", BAD_ENDS, ids=str)
async def test_a_kernel_that_is_not_renewed_in_time_is_renewed_at_the_next_cell(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect
) -> None:
    name = f"renewed {effect}"
    with anyio.fail_after(20):
        await sandbox.run_code("x = 1", context_id=name)
        with e2b_server.misbehave(Fault("restart_context", effect)), pytest.raises(ExecutionTimeout):
            await sandbox.run_code(ENDLESS, context_id=name, timeout=1)
        await require_fine(e2b_server, sandbox)
        told = await sandbox.run_code("print('x' in globals())", context_id=name)
        assert (told.exit_code, told.stdout) == (0, "False\n")
        assert name in told.stderr
        assert (await sandbox.run_code("print(1)", context_id=name)).stderr == ""


@pytest.mark.parametrize("effect", BAD_ENDS, ids=str)
async def test_a_clean_context_that_cannot_be_removed_costs_nothing(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect
) -> None:
    with anyio.fail_after(25):
        with e2b_server.misbehave(Fault("close_context", effect)), pytest.raises(ExecutionTimeout):
            await sandbox.run_code(ENDLESS, timeout=1)
        await require_fine(e2b_server, sandbox)
        assert (await sandbox.run_code("print('fine')")).stdout == "fine\n"


async def test_the_deadline_of_a_stream_that_nobody_reads_ends_its_tree_and_not_the_sandbox(
    e2b_server: E2BServer, sandbox: Sandbox
) -> None:
    with anyio.fail_after(20):
        async with sandbox.stream(TREE, timeout=1) as stream:
            while e2b_server.processes(sandbox.id) or await sleepers(sandbox):
                await anyio.sleep(0.1)
            with pytest.raises(ExecutionTimeout):
                await stream.wait()
        await require_fine(e2b_server, sandbox)


async def test_two_trees_are_ended_at_once_where_there_is_no_root(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:

        async def overrun() -> None:
            with pytest.raises(ExecutionTimeout):
                await sandbox.run(TREE, timeout=1)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(overrun)
            await require_fine(e2b_server, sandbox)


async def test_others_and_what_they_left_behind_go_on(e2b_server: E2BServer) -> None:
    async with await create() as sandbox, await create() as other:
        await sandbox.run("setsid sleep 300 >/dev/null 2>&1 & sleep 300 >/dev/null 2>&1 &")
        finished: list[str] = []

        async def innocent() -> None:
            finished.append((await sandbox.run("sleep 2; echo done")).stdout)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(innocent)
                with pytest.raises(ExecutionTimeout):
                    await sandbox.run(TREE, timeout=0.7)
            assert finished == ["done\n"]
            assert await sleepers(sandbox) == 2
            assert await sleepers(other) == 0


OWN_NUMBER = "import resource; print(resource.getrlimit(10)[0])"
TAKE = """
import os, resource, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.2)
        try:
            resource.setrlimit(10, ({number}, {number}))
        except (ValueError, OSError) as exc:
            print(type(exc).__name__, flush=True)
        else:
            print("taken", flush=True)
        subprocess.run(["sleep", "300"])
    os._exit(0)
time.sleep(300)
"""


@pytest.mark.parametrize("as_code", [False, True])
async def test_the_number_of_an_earlier_execution_cannot_be_taken(
    e2b_server: E2BServer, sandbox: Sandbox, as_code: bool
) -> None:
    earlier = (await sandbox.run(["python3", "-c", OWN_NUMBER])).stdout.strip()
    assert len(earlier) == 19
    code = TAKE.format(number=earlier)
    with anyio.fail_after(20):
        with pytest.raises(ExecutionTimeout) as caught:
            if as_code:
                await sandbox.run_code(code, timeout=2)
            else:
                await sandbox.run(["python3", "-c", code], timeout=2)
        assert caught.value.partial is not None
        assert caught.value.partial.stdout == "ValueError\n"
        await require_fine(e2b_server, sandbox)


async def test_a_tree_that_cannot_be_ended_takes_the_sandbox_with_it(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:
        with anyio.fail_after(30):
            with e2b_server.misbehave(Fault("start", Refuse(503), skip=1)), pytest.raises(ExecutionTimeout):
                await sandbox.run(TREE, timeout=0.5)
            with pytest.raises(SandboxGone):
                await sandbox.run("echo still there")
            while any(each.id == sandbox.id for each in e2b_server.sandboxes()):
                await anyio.sleep(0.1)
