"""What an execution that ended by itself is said to have done."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.adapter.driver import Exit, ShellMissing
from sandboxio.adapter.output import OUTPUT_CAP_BYTES
from sandboxio.errors import CapabilityNotSupported, ConnectError, ResourceLimitExceeded, SandboxGone


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


async def test_a_missing_shell_is_a_missing_capability(make_sandbox):
    sandbox, _ = make_sandbox(ShellMissing())
    with pytest.raises(CapabilityNotSupported, match="no shell"):
        await sandbox.run("echo hi")


async def test_a_missing_interpreter_is_a_missing_capability(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(127, missing=True)))
    with pytest.raises(CapabilityNotSupported, match="python3"):
        await sandbox.run_code("print(1)")


async def test_code_that_itself_exits_with_127_is_an_exit_code(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(exit=Exit(127)))
    assert (await sandbox.run_code("import sys; sys.exit(127)")).exit_code == 127
