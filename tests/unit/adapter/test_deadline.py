"""An execution ends at its deadline, and only where it had not ended before."""

from __future__ import annotations

import threading

import anyio
import pytest

from sandboxio.adapter import watchdog
from sandboxio.adapter.driver import DeadlineReached, Exit
from sandboxio.errors import ExecutionTimeout, SandboxGone


async def test_a_timeout_kills_the_tree_and_keeps_what_was_written(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"so far"], leader_exits=False, end_of_output=False))
    with pytest.raises(ExecutionTimeout) as caught:
        await sandbox.run(["prog"], timeout=0.05)
    assert caught.value.partial is not None
    assert caught.value.partial.exit_code == -1
    assert caught.value.partial.stdout == "so far"
    assert driver.process.kills == 1
    assert driver.destroyed == 0


async def test_a_provider_that_sees_the_deadline_first_is_believed(make_sandbox, scripted):
    process = scripted([b"so far"], leader_exits=False)

    async def wait() -> Exit:
        raise DeadlineReached

    process.wait = wait
    sandbox, driver = make_sandbox(process)
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["prog"])
    assert driver.process.kills == 1


async def test_a_provider_that_does_not_answer_cannot_hold_up_a_timeout(make_sandbox, scripted, monkeypatch):
    monkeypatch.setattr("sandboxio.adapter.process._POLL_BOUND_SECONDS", 0.1)
    process = scripted(leader_exits=False, end_of_output=False)
    process.poll = anyio.sleep_forever
    sandbox, driver = make_sandbox(process)
    with anyio.fail_after(3), pytest.raises(ExecutionTimeout):
        await sandbox.run(["prog"], timeout=0.3)
    assert driver.process.kills == 1


async def test_a_process_that_ended_in_time_is_no_timeout_however_late_it_is_read(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"done"]))
    async with sandbox.stream(["prog"], timeout=0.05) as process:
        await anyio.sleep(0.2)
        assert (await process.wait()).exit_code == 0
    assert driver.process.kills == 0


async def test_a_leader_that_ended_just_before_the_deadline_leaves_its_children_alone(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"done"], end_of_output=False))
    result = await sandbox.run(["prog"], timeout=0.05)
    assert (result.exit_code, result.stdout) == (0, "done")
    assert driver.process.kills == 0


async def test_an_expired_sandbox_is_gone_without_asking_anyone(make_sandbox):
    sandbox, driver = make_sandbox(lifetime=0.01)
    await anyio.sleep(0.02)
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])
    assert driver.specs == []


async def test_an_inherited_timeout_ends_before_the_sandbox_does(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False), lifetime=0.5)
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["prog"])
    assert driver.specs[0].timeout < 0.3


async def test_a_stream_that_nobody_reads_is_ended_at_its_deadline(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"x"], leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"], timeout=0.05) as process:
        with anyio.fail_after(5):
            while not driver.process.kills:
                await anyio.sleep(0.01)
        with pytest.raises(ExecutionTimeout):
            await process.wait()


async def read_whole(process) -> None:
    async for _ in process:
        pass


@pytest.mark.parametrize("read", [read_whole, lambda process: process.wait()], ids=["iterated", "waited for"])
async def test_who_reads_a_stream_after_its_deadline_is_told_of_that_and_not_of_the_kill(
    make_sandbox, scripted, read
):
    process = scripted([b"x"], leader_exits=False)
    end = process.kill

    async def kill() -> None:
        process.exit, process.leader_exits = Exit(137), True
        await end()

    process.kill = kill
    sandbox, driver = make_sandbox(process)
    async with sandbox.stream(["prog"], timeout=0.05) as stream:
        with anyio.fail_after(5):
            while not process.kills:
                await anyio.sleep(0.01)
        await anyio.sleep(0.05)
        with pytest.raises(ExecutionTimeout):
            await read(stream)
    assert driver.destroyed == 0


async def test_a_stream_that_cannot_be_ended_at_its_deadline_takes_the_sandbox_with_it(
    make_sandbox, scripted
):
    process = scripted(leader_exits=False, end_of_output=False, kill_error=RuntimeError("no"))
    sandbox, driver = make_sandbox(process)
    async with sandbox.stream(["prog"], timeout=0.05):
        with anyio.fail_after(5):
            while not driver.destroyed:
                await anyio.sleep(0.01)


async def test_the_thread_that_keeps_deadlines_ends_after_the_last_stream(
    make_sandbox, scripted, monkeypatch
):
    monkeypatch.setattr("sandboxio.adapter.watchdog.LINGER_SECONDS", 0.05)

    def running() -> bool:
        return any(thread.name == "sandboxio" for thread in threading.enumerate())

    sandbox, _ = make_sandbox(scripted([b"x"]))
    async with sandbox.stream(["prog"]) as process:
        await process.wait()
        assert running()
    with anyio.fail_after(5):
        while running():
            await anyio.sleep(0.01)


def test_deadlines_of_ended_streams_are_forgotten_while_one_goes_on():
    async def never():
        raise AssertionError

    service = watchdog._Service()
    long_one = service.watch(600, never)
    for _ in range(1000):
        service.watch(300, never).cancel()
    assert len(service._heap) <= 2 * service._live + watchdog.SPARE_ENTRIES
    assert long_one in service._heap
    long_one.cancel()
