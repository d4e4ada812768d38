"""The audit record that an operation leaves."""

from __future__ import annotations

import anyio
import pytest


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


async def test_a_stream_that_is_never_entered_opens_no_record(make_sandbox, sink):
    sandbox, driver = make_sandbox()
    sandbox.stream(["prog"])
    assert driver.specs == []
    assert sink.events == []


async def test_a_cancelled_operation_is_recorded_as_cancelled(make_sandbox, scripted, sink):
    sandbox, _ = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    with anyio.move_on_after(0.02):
        await sandbox.run(["prog"])
    assert [event.error_code for event in sink.events] == ["cancelled"]


async def test_what_a_caller_raises_after_the_end_is_no_failure_of_the_execution(
    make_sandbox, scripted, sink
):
    sandbox, _ = make_sandbox(scripted([b"x"]))
    with pytest.raises(ZeroDivisionError):
        async with sandbox.stream(["prog"]) as process:
            await process.wait()
            raise ZeroDivisionError
    assert [(event.exit_code, event.error_code) for event in sink.events] == [(0, None)]
