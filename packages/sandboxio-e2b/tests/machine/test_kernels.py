"""Kernels are interrupted, die, are replaced, and take turns."""

from __future__ import annotations

import asyncio

import pytest
from e2b_server.ports import Machine
from machine_suite import (
    begin,
    execute,
    one,
    output,
    refused,
    texts,
    until,
)

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    "sleep", ["import time; time.sleep(300)", "import asyncio; await asyncio.sleep(300)"]
)
async def test_turning_away_interrupts_the_cell(machine: Machine, context: str, sleep: str) -> None:
    code = f"""
try:
    print("begun")
    {sleep}
except BaseException as exc:
    state = type(exc).__name__
    raise
"""
    cell = await begin(machine, context, code)
    await cell.aclose()
    async with asyncio.timeout(5):
        messages = await execute(machine, context, "state")
    assert one(messages, "result")["text"] in ("KeyboardInterrupt", "CancelledError")


async def test_a_cell_that_ignores_interrupts_blocks_the_next_until_a_restart(
    machine: Machine, context: str
) -> None:
    ignore = "import signal, time; known = signal.signal(signal.SIGINT, signal.SIG_IGN)"
    cell = await begin(machine, context, f"{ignore}\nprint('begun')\ntime.sleep(300)")
    await cell.aclose()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await execute(machine, context, "1")
    waiting = asyncio.create_task(execute(machine, context, "'known' in dir()"))
    await machine.kernels.restart(context)
    async with asyncio.timeout(5):
        messages = await waiting
    assert messages[0]["execution_count"] == 1
    assert one(messages, "result")["text"] == "False"


async def test_a_cell_that_floods_a_reader_who_does_not_read_can_be_left(
    machine: Machine, context: str
) -> None:
    cell = await begin(machine, context, "while True: print('begun' * 200)")
    other = await machine.kernels.open("python", None)
    assert one(await execute(machine, other.id, "7"), "result")["text"] == "7"
    await machine.kernels.close(other.id)
    await cell.aclose()
    async with asyncio.timeout(5):
        assert one(await execute(machine, context, "8"), "result")["text"] == "8"


async def test_a_restart_ends_the_cell_that_runs_and_what_it_started(machine: Machine, context: str) -> None:
    start = "import subprocess; child = subprocess.Popen(['sleep', '300'])"
    keep = "open('child', 'w').write(str(child.pid))"
    cell = await begin(machine, context, f"{start}\n{keep}\nprint('begun')\nchild.wait()")
    child = await output(machine, "cat child")
    await machine.kernels.restart(context)
    rest = [message async for message in cell]
    assert [message["type"] for message in rest] == ["error", "end_of_execution"]
    assert rest[0]["name"] == "ContextRestarting"

    async def dead() -> bool:
        return (await output(machine, f"kill -0 {child} 2>/dev/null && echo lives || true")) == ""

    await until(dead)


async def test_a_kernel_that_dies_is_replaced(machine: Machine, context: str) -> None:
    messages = await execute(machine, context, "x = 1\nprint('last words')\nimport os; os._exit(9)")
    assert texts(messages, "stdout") == "last words\n"
    assert [m["type"] for m in messages[-2:]] == ["error", "end_of_execution"]
    assert one(messages, "error")["name"] == "ContextRestarting"
    assert one(await execute(machine, context, "x"), "error")["name"] == "NameError"


async def test_cells_of_one_context_take_turns_and_contexts_do_not(machine: Machine, context: str) -> None:
    other = await machine.kernels.open("python", "/tmp")
    await output(machine, "rm -f turn; mkfifo turn")
    first = asyncio.create_task(
        execute(machine, context, "order = [1]; open('turn').read(); order.append(2)")
    )
    second = asyncio.create_task(execute(machine, context, "order.append(3); order"))
    parallel = await execute(machine, other.id, "import os; os.getcwd()")
    assert one(parallel, "result")["text"] == "/tmp"
    assert not second.done()
    await output(machine, "echo > turn")
    await first
    assert one(await second, "result")["text"] == "[1, 2, 3]"
    await machine.kernels.close(other.id)
    assert other.id not in [each.id for each in await machine.kernels.contexts()]
    await refused("not_found", execute(machine, other.id, "1"))
