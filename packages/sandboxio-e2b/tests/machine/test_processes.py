"""Processes in a machine behave as envd's do."""

from __future__ import annotations

import asyncio
import hashlib
import os

import pytest
from e2b_server.ports import Ended, Machine, Output, Process, ProcessConfig
from machine_suite import (
    MIB,
    collect,
    execute,
    one,
    output,
    refused,
    shell,
    until,
)

pytestmark = pytest.mark.docker


async def test_a_process_reports_its_streams_and_its_exit(machine: Machine) -> None:
    process = await machine.start(shell("echo out; echo err >&2; exit 3"), stdin=False)
    assert machine.processes[process.pid] is process
    assert await collect(process) == (b"out\n", b"err\n", Ended(3, True, "exit status 3"))
    assert process.pid not in machine.processes


async def test_the_pid_is_the_leaders_own_and_no_group_leaders(machine: Machine) -> None:
    process = await machine.start(shell("echo $$; cut -d' ' -f5 /proc/$$/stat"), stdin=False)
    out, _, _ = await collect(process)
    own, group = out.split()
    assert int(own) == process.pid
    assert int(group) != process.pid


async def test_a_process_gets_the_machines_variables_and_its_own(machine: Machine) -> None:
    config = shell("echo $HOME $USER $OF_MACHINE $KEPT $MORE; pwd", KEPT="new", MORE="own")
    out, _, _ = await collect(await machine.start(config, stdin=False))
    assert out.decode().split() == [machine.home, "user", "yes", "new", "own", machine.home]
    names = {line.partition("=")[0] for line in (await output(machine, "env")).splitlines()}
    assert names >= {"PATH", "HOME", "USER", "OF_MACHINE"}


async def test_what_cannot_be_started_is_an_invalid_argument(machine: Machine) -> None:
    told = await refused("invalid_argument", machine.start(shell("true", cwd="/nowhere"), stdin=False))
    assert told == "cwd '/nowhere' does not exist"
    await refused("invalid_argument", machine.start(ProcessConfig("/no/program", (), {}, None), stdin=False))
    await refused("invalid_argument", machine.start(shell("x" * 200_000), stdin=False))


async def test_the_end_waits_for_the_pipes_and_the_leader_stays_a_zombie(machine: Machine) -> None:
    await output(machine, "rm -f gate; mkfifo gate")
    process = await machine.start(shell("(read line < gate; echo child) & echo leader"), stdin=False)
    events = process.events()
    assert await anext(events) == Output("stdout", b"leader\n")

    async def zombie() -> bool:
        return (await output(machine, f"cut -d' ' -f3 /proc/{process.pid}/stat")).strip() == "Z"

    await until(zombie)
    assert process.pid in machine.processes
    await output(machine, "echo go > gate")
    assert [event async for event in events] == [
        Output("stdout", b"child\n"),
        Ended(0, True, "exit status 0"),
    ]


async def test_a_signal_meets_the_leader_alone(machine: Machine) -> None:
    process = await machine.start(shell("sleep 300 & echo $!; wait"), stdin=False)
    events = process.events()
    first = await anext(events)
    assert isinstance(first, Output)
    child = int(first.data)
    await process.signal("SIGNAL_SIGTERM")

    async def zombie() -> bool:
        return (await output(machine, f"cut -d' ' -f3 /proc/{process.pid}/stat")).strip() == "Z"

    await until(zombie)
    assert await output(machine, f"kill -0 {child} && echo lives") == "lives\n"
    await output(machine, f"kill -9 {child}")
    assert await anext(events) == Ended(-1, False, "signal: terminated")
    await refused("not_found", process.signal("SIGNAL_SIGKILL"))


async def test_a_signal_to_its_own_group_leaves_the_machine_alone(machine: Machine) -> None:
    _, _, end = await collect(await machine.start(shell("kill -9 0"), stdin=False))
    assert end == Ended(-1, False, "signal: killed")
    assert await output(machine, "echo fine") == "fine\n"


async def test_output_comes_in_pieces_of_at_most_32_kib(machine: Machine) -> None:
    process = await machine.start(shell("head -c 1000000 /dev/zero"), stdin=False)
    sizes = [len(event.data) async for event in process.events() if isinstance(event, Output)]
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 32 * 1024


PRODUCER = """
import sys
for count in range(50):
    sys.stdout.buffer.write(bytes(2**20))
    with open("progress", "w") as file:
        file.write(str(count))
"""


async def test_a_process_waits_for_a_slow_listener_and_for_no_other(machine: Machine) -> None:
    await output(machine, "echo -1 > progress")
    process = await machine.start(ProcessConfig("python3", ("-u", "-c", PRODUCER), {}, None), stdin=False)
    events = process.events()
    other = await machine.start(shell("head -c 20000000 /dev/zero"), stdin=False)
    assert len((await collect(other))[0]) == 20_000_000
    assert await output(machine, "cat progress") in ("-1\n", "0")
    total = 0
    async for event in events:
        if isinstance(event, Output):
            total += len(event.data)
    assert total == 50 * MIB
    assert await output(machine, "cat progress") == "49"


async def test_output_that_nobody_listens_to_is_dropped(machine: Machine) -> None:
    process = await machine.start(shell("head -c 5000000 /dev/zero; echo last"), stdin=False)
    listener = process.events()
    assert isinstance(await anext(listener), Output)
    del listener

    async def gone() -> bool:
        return process.pid not in machine.processes

    await until(gone)


async def test_a_second_listener_hears_what_comes_from_then_on(machine: Machine) -> None:
    process = await machine.start(shell("echo one; read line; echo two"), stdin=True)
    first = process.events()
    assert await anext(first) == Output("stdout", b"one\n")
    second = process.events()
    await process.send_input(b"go\n")
    expected = [Output("stdout", b"two\n"), Ended(0, True, "exit status 0")]
    assert [event async for event in first] == expected
    assert [event async for event in second] == expected


async def test_big_input_arrives_whole(machine: Machine) -> None:
    data = os.urandom(8 * MIB)
    process = await machine.start(shell("sha256sum"), stdin=True)
    for start in range(0, len(data), MIB):
        await process.send_input(data[start : start + MIB])
    await process.close_input()
    out, _, _ = await collect(process)
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest()


async def test_input_waits_for_a_process_that_does_not_read(machine: Machine) -> None:
    process = await machine.start(shell("sleep 300"), stdin=True)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await process.send_input(bytes(MIB))
    await process.signal("SIGNAL_SIGKILL")
    assert (await collect(process))[2].status == "signal: killed"


async def test_input_that_nobody_can_read_is_an_error(machine: Machine) -> None:
    process = await machine.start(shell("exec <&-; echo closed; read line < /dev/zero"), stdin=True)
    events = process.events()
    await anext(events)
    assert "broken pipe" in await refused("internal", process.send_input(b"x"))
    await process.signal("SIGNAL_SIGKILL")
    without = await machine.start(shell("cat; sleep 300"), stdin=False)
    await refused("internal", without.send_input(b"x"))
    await without.signal("SIGNAL_SIGKILL")


async def test_a_start_that_nobody_waits_for_still_happens(machine: Machine) -> None:
    task = asyncio.create_task(
        machine.start(shell("head -c 5000000 /dev/zero; sleep 300", MARK="lost"), stdin=False)
    )
    await asyncio.sleep(0)
    task.cancel()

    def found() -> list[Process]:
        return [each for each in machine.processes.values() if each.config.envs.get("MARK") == "lost"]

    async def there() -> bool:
        return bool(found())

    await until(there)
    await found()[0].signal("SIGNAL_SIGKILL")


async def test_a_hundred_processes_run_at_once(machine: Machine) -> None:
    async def one(number: int) -> bytes:
        process = await machine.start(shell(f"head -c 200000 /dev/zero | wc -c; echo {number}"), stdin=False)
        return (await collect(process))[0]

    answers = await asyncio.gather(*(one(number) for number in range(100)))
    assert answers == [f"200000\n{number}\n".encode() for number in range(100)]


FULL = """
import os, time
reading, writing = os.pipe()  # its writing end goes with the leader
try:
    while True:
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
except OSError:
    print("full", flush=True)
    time.sleep(300)
"""


async def test_a_machine_full_of_processes_still_answers(machine: Machine, context: str) -> None:
    process = await machine.start(ProcessConfig("python3", ("-c", FULL), {}, None), stdin=False)
    events = process.events()
    assert await anext(events) == Output("stdout", b"full\n")
    await refused("resource_exhausted", machine.start(shell("true"), stdin=False))
    assert one(await execute(machine, context, "'kernel'"), "result")["text"] == "kernel"
    await process.signal("SIGNAL_SIGKILL")
    assert [event async for event in events] == [Ended(-1, False, "signal: killed")]
    assert await output(machine, "echo fine") == "fine\n"


async def test_memory_ends_the_process_that_took_it_and_not_the_machine(
    machine: Machine, context: str
) -> None:
    hog = "hog = bytearray(4 * 2**30)"
    killed = Ended(-1, False, "signal: killed")
    process = await machine.start(ProcessConfig("python3", ("-c", hog), {}, None), stdin=False)
    assert (await collect(process))[2] == killed
    assert one(await execute(machine, context, hog), "error")["name"] == "ContextRestarting"
    assert one(await execute(machine, context, "'kernel'"), "result")["text"] == "kernel"
