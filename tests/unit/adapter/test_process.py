"""One execution: its deadline, its drain, its input and its end."""

from __future__ import annotations

import threading
import warnings

import anyio
import pytest

from sandboxio.adapter.driver import DeadlineReached, Exit, ShellMissing
from sandboxio.adapter.output import OUTPUT_CAP_BYTES
from sandboxio.errors import (
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    ExecutionError,
    ExecutionTimeout,
    OrphanedSandboxWarning,
    PathNotFound,
    ResourceLimitExceeded,
    SandboxGone,
)
from sandboxio.models import PIPE


async def test_a_run_returns_what_was_written_and_the_exit_code(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"one ", b"two"], exit=Exit(3)))
    result = await sandbox.run(["prog"])
    assert (result.exit_code, result.stdout, result.stderr, result.streamed) == (3, "one two", "", False)
    assert result.meter is not None
    assert result.meter.backend == "scripted"
    assert driver.process.kills == 0
    assert driver.process.closed == 1


async def test_a_character_split_over_chunks_is_whole_in_the_text(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted([b"\xe2", b"\x98\x95"]))
    assert (await sandbox.run(["prog"])).stdout == "☕"


async def test_output_beyond_the_cap_is_dropped_without_a_broken_character(make_sandbox, scripted):
    cup = "☕".encode()
    sandbox, _ = make_sandbox(scripted([cup * 1_000_000] * 6 + [b"x"]))
    result = await sandbox.run(["prog"])
    assert result.truncated
    assert len(result.stdout.encode()) == OUTPUT_CAP_BYTES // 3 * 3
    assert "\ufffd" not in result.stdout


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


async def test_an_execution_ends_with_its_leader_while_a_child_holds_the_output(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"hi"], end_of_output=False))
    with anyio.fail_after(5):
        result = await sandbox.run(["prog"])
    assert result.stdout == "hi"
    assert driver.process.polls == 1
    assert driver.process.kills == 0


async def test_a_child_that_never_stops_writing_does_not_prolong_the_drain(make_sandbox, scripted):
    process = scripted(end_of_output=False)

    class Endless(list):
        def __bool__(self):
            return True

        def pop(self, index=0):
            return type(process)([b"spam"]).chunks[0]

    process.chunks = Endless()
    sandbox, _ = make_sandbox(process)
    with anyio.fail_after(5):
        assert (await sandbox.run(["prog"])).ok


async def test_input_larger_than_any_pipe_is_fed_while_output_is_read(make_sandbox, scripted):
    data = bytes(range(256)) * 400
    sandbox, driver = make_sandbox(scripted(echo=True))
    result = await sandbox.run(["cat"], stdin=data)
    assert driver.process.input == data
    assert result.stdout == data.decode("utf-8", "replace")


async def test_without_input_no_input_is_opened(make_sandbox):
    sandbox, driver = make_sandbox()
    await sandbox.run(["cat"])
    assert driver.specs[0].open_stdin is False


async def test_input_is_written_while_a_stream_runs(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(echo=True))
    async with sandbox.stream(["cat"], stdin=PIPE) as process:
        await process.write("abc")
        await process.close_stdin()
        assert [chunk.data async for chunk in process] == [b"abc"]
        with pytest.raises(ExecutionError):
            await process.write(b"more")
    assert driver.process.input == b"abc"


async def test_a_stream_left_early_has_its_tree_killed(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"a", b"b"], leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"]) as process:
        async for _ in process:
            break
    assert driver.process.kills == 1


async def test_a_stream_read_to_its_end_knows_its_code_and_kills_nothing(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"a"], exit=Exit(7)))
    async with sandbox.stream(["prog"]) as process:
        async for _ in process:
            pass
        assert process.returncode == 7
        first = await process.wait()
        assert first is await process.wait()
        assert (first.streamed, first.stdout) == (True, "")
    assert driver.process.kills == 0


async def test_a_cancelled_run_kills_the_tree_and_stays_a_cancellation(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with anyio.move_on_after(0.05) as scope:
        await sandbox.run(["prog"])
    assert scope.cancelled_caught
    assert driver.process.kills == 1
    assert driver.process.closed == 1


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


async def test_a_kill_for_memory_names_the_limit(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted([b"x"], exit=Exit(137, oom_killed=True)))
    with pytest.raises(ResourceLimitExceeded, match="memory_mb=64") as caught:
        await sandbox.run(["hog"])
    assert caught.value.partial is not None
    assert caught.value.partial.oom_killed
    assert caught.value.partial.stdout == "x"


async def test_a_kill_for_memory_behind_a_shell_is_told_in_the_result(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(0, oom_killed=True)))
    assert (await sandbox.run(["sh"])).oom_killed


async def test_an_unknown_exit_code_is_an_error(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(None)))
    with pytest.raises(ConnectError):
        await sandbox.run(["prog"])


async def test_137_is_an_exit_code_while_the_sandbox_lives_and_its_end_otherwise(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(exit=Exit(137)))
    assert (await sandbox.run(["prog"])).exit_code == 137
    driver.running = False
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_a_lost_connection_is_told_apart_from_a_lost_sandbox(make_sandbox):
    sandbox, driver = make_sandbox(OSError("reset"))
    with pytest.raises(ConnectError) as caught:
        await sandbox.run(["prog"])
    assert isinstance(caught.value.__cause__, OSError)
    driver.running = False
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_a_missing_shell_is_a_missing_capability(make_sandbox):
    sandbox, _ = make_sandbox(ShellMissing())
    with pytest.raises(CapabilityNotSupported, match="no shell"):
        await sandbox.run("echo hi")


async def test_an_error_of_ours_passes_through_unchanged(make_sandbox):
    error = PathNotFound("the folder /nope does not exist")
    sandbox, _ = make_sandbox(error)
    with pytest.raises(PathNotFound) as caught:
        await sandbox.run(["prog"], cwd="/nope")
    assert caught.value is error


async def test_a_missing_interpreter_is_a_missing_capability(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(127, missing=True)))
    with pytest.raises(CapabilityNotSupported, match="python3"):
        await sandbox.run_code("print(1)")


async def test_code_that_itself_exits_with_127_is_an_exit_code(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(127)))
    assert (await sandbox.run_code("import sys; sys.exit(127)")).exit_code == 127


async def test_code_goes_in_by_standard_input_whatever_its_length(make_sandbox, scripted):
    code = "#" + "x" * 200_000
    sandbox, driver = make_sandbox(scripted(echo=True))
    await sandbox.run_code(code)
    assert driver.process.input == code.encode()


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


async def test_a_stream_that_is_never_entered_opens_no_record(make_sandbox, sink):
    sandbox, driver = make_sandbox()
    sandbox.stream(["prog"])
    assert driver.specs == []
    assert sink.events == []


async def test_a_stream_that_nobody_reads_is_ended_at_its_deadline(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted([b"x"], leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"], timeout=0.05) as process:
        with anyio.fail_after(5):
            while not driver.process.kills:
                await anyio.sleep(0.01)
        with pytest.raises(ExecutionTimeout):
            await process.wait()


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


async def test_a_stream_cannot_be_started_twice(make_sandbox):
    sandbox, _ = make_sandbox()
    process = sandbox.stream(["prog"])
    async with process:
        pass
    with pytest.raises(ConfigurationError):
        await process.__aenter__()


async def test_a_stream_that_was_not_entered_cannot_be_read(make_sandbox):
    sandbox, _ = make_sandbox()
    with pytest.raises(ConfigurationError):
        await sandbox.stream(["prog"]).wait()


async def test_leaving_an_owned_sandbox_ends_it_and_a_connected_one_never(make_sandbox):
    for owned in (True, False):
        sandbox, driver = make_sandbox(owned=owned)
        async with sandbox:
            pass
        assert driver.destroyed == int(owned)
        assert driver.closed >= 1


async def test_a_teardown_that_fails_warns_and_keeps_the_callers_error(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.warns(OrphanedSandboxWarning), pytest.raises(ZeroDivisionError):
        async with sandbox:
            raise ZeroDivisionError


async def test_a_refused_kill_names_the_way_out(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.raises(ConnectError) as caught:
        await sandbox.kill()
    assert "sandboxio reap --kill" in caught.value.hint


async def test_a_detached_sandbox_outlives_its_context(make_sandbox):
    sandbox, driver = make_sandbox()
    async with sandbox:
        assert await sandbox.detach() == "box-1"
    assert (driver.detached, driver.destroyed) == (1, 0)


async def test_kill_twice_destroys_once(make_sandbox):
    sandbox, driver = make_sandbox()
    await sandbox.kill()
    await sandbox.kill()
    assert driver.destroyed == 1
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_every_operation_leaves_one_record_and_no_secret_in_it(make_sandbox, scripted, sink):
    sandbox, _ = make_sandbox(scripted([b"out"]), secrets={"TOKEN": "s3cr3t"}, capture_code=True)
    await sandbox.run(["prog", "--key=s3cr3t"])
    await sandbox.run_code("print('s3cr3t')")
    run, code = sink.events
    assert (run.event, run.argv, run.exit_code, run.bytes_out) == ("run", ("prog", "--key=[redacted]"), 0, 3)
    assert run.tenant_id == "t1"
    assert code.code == "print('[redacted]')"
    assert code.code_sha256 is not None
    assert "s3cr3t" not in repr(sink.events)


async def test_a_secret_in_a_providers_message_is_redacted_along_the_chain(make_sandbox):
    sandbox, driver = make_sandbox(OSError("bad env TOKEN=s3cr3t"), secrets={"TOKEN": "s3cr3t"})
    with pytest.raises(ConnectError) as caught:
        await sandbox.run(["prog"])
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value.__cause__)
    assert driver.specs[0].env["TOKEN"] == "s3cr3t"
    assert "s3cr3t" not in repr(driver.specs[0])


async def test_a_cancelled_operation_is_recorded_as_cancelled(make_sandbox, scripted, sink):
    sandbox, _ = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with anyio.move_on_after(0.02):
        await sandbox.run(["prog"])
    assert [event.error_code for event in sink.events] == ["cancelled"]


async def test_a_slow_teardown_warns_instead_of_hanging(make_sandbox, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    sandbox, driver = make_sandbox()
    driver.destroy = anyio.sleep_forever
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with anyio.fail_after(5):
            async with sandbox:
                pass
    assert [entry.category for entry in caught] == [OrphanedSandboxWarning]


@pytest.mark.parametrize("command", ["a\0b", ["a", "b\0"], ["\ud800"], [], [""], b"ls", ["-rf"], 7, [b"ls"]])
async def test_a_command_that_cannot_be_one_is_refused_before_anything_is_sent(make_sandbox, command):
    sandbox, driver = make_sandbox()
    with pytest.raises(ConfigurationError):
        await sandbox.run(command)
    assert driver.specs == []


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


async def test_a_provider_that_does_not_answer_cannot_hold_up_a_timeout(make_sandbox, scripted, monkeypatch):
    monkeypatch.setattr("sandboxio.adapter.process._POLL_BOUND_SECONDS", 0.1)
    process = scripted(leader_exits=False, end_of_output=False)
    process.poll = anyio.sleep_forever
    sandbox, driver = make_sandbox(process)
    with anyio.fail_after(3), pytest.raises(ExecutionTimeout):
        await sandbox.run(["prog"], timeout=0.3)
    assert driver.process.kills == 1


async def test_a_lost_connection_is_told_even_when_the_provider_is_slow_to_answer(make_sandbox, scripted):
    process = scripted(leader_exits=False)

    async def receive():
        raise OSError("reset")

    process.receive = receive
    sandbox, driver = make_sandbox(process)

    async def alive():
        await anyio.sleep(0.4)
        return True

    driver.alive = alive
    async with sandbox.stream(["prog"], timeout=30) as running:
        with pytest.raises(ConnectError) as first:
            await running.wait()
        with pytest.raises(ConnectError) as second:
            await running.wait()
    assert first.value is second.value


async def test_two_tasks_cannot_read_one_process(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"]) as process, anyio.create_task_group() as group:
        group.start_soon(process.wait)
        await anyio.sleep(0.01)
        with pytest.raises(ConfigurationError, match="another task"):
            await process.wait()
        group.cancel_scope.cancel()


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


async def test_a_kill_that_does_not_end_in_time_is_an_error(make_sandbox, sink, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    sandbox, driver = make_sandbox()
    driver.destroy = anyio.sleep_forever
    with pytest.raises(ConnectError, match="SBX_TEARDOWN_GRACE"):
        await sandbox.kill()
    assert [event.error_code for event in sink.events] == ["SBX_E1202"]


async def test_a_malformed_grace_disables_no_kill_and_replaces_no_error(make_sandbox, scripted, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "abc")
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "abc")
    sandbox, driver = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with pytest.raises(ZeroDivisionError):
        async with sandbox, sandbox.stream(["prog"]):
            raise ZeroDivisionError
    assert driver.process.kills == 1
    assert driver.destroyed == 1


async def test_a_warning_made_an_error_replaces_no_error(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError) as caught:
            async with sandbox:
                raise ZeroDivisionError
    assert "may still run" in caught.value.__notes__[0]


async def test_a_sandbox_whose_end_was_refused_still_gives_local_resources_back(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.warns(OrphanedSandboxWarning):
        async with sandbox:
            pass
    assert driver.closed == 1


async def test_a_callers_own_error_is_not_altered(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted([b"x"]), secrets={"TOKEN": "s3cr3t"})
    error = ValueError("s3cr3t")
    with pytest.raises(ValueError, match="s3cr3t"):
        async with sandbox.stream(["prog"]):
            raise error


async def test_what_a_caller_raises_after_the_end_is_no_failure_of_the_execution(
    make_sandbox, scripted, sink
):
    sandbox, _ = make_sandbox(scripted([b"x"]))
    with pytest.raises(ZeroDivisionError):
        async with sandbox.stream(["prog"]) as process:
            await process.wait()
            raise ZeroDivisionError
    assert [(event.exit_code, event.error_code) for event in sink.events] == [(0, None)]


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_an_interrupt_while_input_is_fed_stays_bare(make_sandbox, scripted):
    process = scripted(echo=True)

    async def receive():
        raise KeyboardInterrupt

    process.receive = receive

    async def send(data):
        await anyio.sleep(1)
        return 0

    process.send = send
    sandbox, _ = make_sandbox(process)
    with pytest.raises(KeyboardInterrupt):
        await sandbox.run(["cat"], stdin=b"x")
