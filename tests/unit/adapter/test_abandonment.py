"""An execution that its caller leaves has its whole tree killed, or takes the sandbox with it."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from sandboxio.errors import ExecutionTimeout, SandboxGone


async def test_a_stream_left_early_has_its_tree_killed(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"a", b"b"], leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"]) as process:
        async for _ in process:
            break
    assert driver.process.kills == 1


async def test_a_cancelled_run_kills_the_tree_and_stays_a_cancellation(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with anyio.move_on_after(0.05) as scope:
        await sandbox.run(["prog"])
    assert scope.cancelled_caught
    assert driver.process.kills == 1
    assert driver.process.closed == 1


async def test_leaving_waits_for_a_kill_that_another_task_has_begun(make_sandbox, scripted):
    process = scripted(leader_exits=False, end_of_output=False)
    killed = False

    async def slow_kill():
        nonlocal killed
        await anyio.sleep(0.1)
        killed = True

    process.kill = slow_kill
    sandbox, _ = make_sandbox(process)
    async with anyio.create_task_group() as group:
        async with sandbox.stream(["prog"]) as running:
            group.start_soon(running.kill)
            await anyio.sleep(0.01)
        assert killed


@pytest.mark.parametrize("how", ["kill_error", "kill_hangs"])
async def test_a_tree_that_cannot_be_killed_takes_the_sandbox_with_it(
    make_sandbox, scripted, monkeypatch, how
):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.1")
    fault = {"kill_error": RuntimeError("no")} if how == "kill_error" else {"kill_hangs": True}
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False, **fault))
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["prog"], timeout=0.05)
    assert driver.destroyed == 1
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_a_malformed_grace_disables_no_kill_and_replaces_no_error(make_sandbox, scripted, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "abc")
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "abc")
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with pytest.raises(ZeroDivisionError):
        async with sandbox, sandbox.stream(["prog"]):
            raise ZeroDivisionError
    assert driver.process.kills == 1
    assert driver.destroyed == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_native_cancellations_do_not_interrupt_the_release(make_sandbox, scripted):
    process = scripted(leader_exits=False, end_of_output=False)
    released = asyncio.Event()

    async def release():
        await asyncio.sleep(0.1)
        released.set()

    process.aclose = release
    sandbox, _ = make_sandbox(process)
    task = asyncio.create_task(sandbox.run(["prog"]))
    await asyncio.sleep(0.02)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.02)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert process.kills == 1
    assert released.is_set()
