"""A streamed process: entered once, read by one task, read to its end."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.adapter.driver import Exit
from sandboxio.errors import ConfigurationError


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


async def test_two_tasks_cannot_read_one_process(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(leader_exits=False, end_of_output=False))
    async with sandbox.stream(["prog"]) as process, anyio.create_task_group() as group:
        group.start_soon(process.wait)
        await anyio.sleep(0.01)
        with pytest.raises(ConfigurationError, match="another task"):
            await process.wait()
        group.cancel_scope.cancel()
