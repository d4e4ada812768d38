"""Deadlines: raised in bounded time, with the output so far, ending one tree and nothing else."""

from __future__ import annotations

import math

import anyio
import pytest

from sandboxio.errors import ConfigurationError, ExecutionTimeout, SandboxTimeout
from sandboxio.models import PIPE, Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["DeadlineTests"]

_RUN = Capability.RUN_COMMAND
_CODE = Capability.RUN_CODE
_STREAM = Capability.RUN_COMMAND | Capability.STREAMING


class DeadlineTests(SuiteBase):
    """Rows on `timeout`."""

    @needs(_RUN)
    async def test_a_command_that_runs_too_long_is_an_execution_timeout(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(30), pytest.raises(ExecutionTimeout) as caught:
            await sandbox.run(self.cmd_hang(), timeout=0.3)
        assert isinstance(caught.value, SandboxTimeout)
        assert "0.3" in caught.value.message

    @needs(_CODE)
    async def test_code_that_runs_too_long_is_an_execution_timeout(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(30), pytest.raises(ExecutionTimeout):
            await sandbox.run_code(self.code_hang(), timeout=0.5)

    @needs(_STREAM)
    async def test_a_stream_that_runs_too_long_is_an_execution_timeout(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(30), pytest.raises(ExecutionTimeout):
            async with sandbox.stream(self.cmd_hang(), timeout=0.3) as process:
                await process.wait()

    @needs(_STREAM)
    async def test_reading_a_stream_that_runs_too_long_is_an_execution_timeout(
        self, sandbox: AsyncSandbox
    ) -> None:
        with anyio.fail_after(30), pytest.raises(ExecutionTimeout):
            async with sandbox.stream(self.cmd_hang(), timeout=0.3) as process:
                async for _ in process:
                    pass

    @needs(_RUN)
    async def test_a_timeout_keeps_what_a_command_had_written(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(ExecutionTimeout) as caught:
            await sandbox.run(self.cmd_echo_then_hang("so far"), timeout=1)
        partial = caught.value.partial
        assert partial is not None
        assert (partial.exit_code, partial.stdout) == (-1, "so far\n")

    @needs(_CODE)
    async def test_a_timeout_keeps_what_code_had_written(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(ExecutionTimeout) as caught:
            await sandbox.run_code(self.code_print_then_hang("so far"), timeout=2)
        partial = caught.value.partial
        assert partial is not None
        assert (partial.exit_code, partial.stdout) == (-1, "so far\n")

    @needs(_RUN)
    async def test_a_timeout_ends_the_whole_tree(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        with pytest.raises(ExecutionTimeout):
            await sandbox.run(self.cmd_hang_tree(), timeout=1, env=self.marked(marker))
        assert await self.count_processes(sandbox, marker) == 0

    @needs(_RUN)
    async def test_a_timeout_leaves_other_executions_alone(self, sandbox: AsyncSandbox) -> None:
        outputs: list[str] = []

        async def innocent() -> None:
            outputs.append((await sandbox.run(self.cmd_echo_later("unharmed", 1), timeout=20)).stdout)

        async with anyio.create_task_group() as group:
            group.start_soon(innocent)
            with pytest.raises(ExecutionTimeout):
                await sandbox.run(self.cmd_hang_tree(), timeout=0.3)
        assert outputs == ["unharmed\n"]

    @needs(_STREAM)
    async def test_a_timeout_leaves_a_process_alone_that_waits_for_input(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=60) as other:
            with pytest.raises(ExecutionTimeout):
                await sandbox.run(self.cmd_hang_tree(), timeout=0.3)
            await other.write(b"still here")
            await other.close_stdin()
            assert b"".join([chunk.data async for chunk in other]) == b"still here"

    @needs(_RUN)
    async def test_a_background_child_of_an_earlier_execution_survives_a_timeout(
        self, sandbox: AsyncSandbox
    ) -> None:
        marker = unique("marker")
        await sandbox.run(self.cmd_leave_child("x", holding_output=False), env=self.marked(marker))
        with pytest.raises(ExecutionTimeout):
            await sandbox.run(self.cmd_hang_tree(), timeout=0.3)
        assert await self.count_processes(sandbox, marker) == 1

    @needs(_RUN)
    async def test_a_sandbox_is_usable_after_a_timeout(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(ExecutionTimeout):
            await sandbox.run(self.cmd_hang(), timeout=0.3)
        assert (await sandbox.run(self.cmd_echo("fine"))).stdout == "fine\n"

    @needs(_RUN)
    async def test_a_command_that_ends_in_time_is_no_timeout(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_echo_later("in time", 0.2), timeout=30)).stdout == "in time\n"

    @needs(_RUN)
    @pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf])
    async def test_a_timeout_that_is_not_positive_and_finite_is_refused(
        self, sandbox: AsyncSandbox, timeout: float
    ) -> None:
        with pytest.raises(ConfigurationError):
            await sandbox.run(self.cmd_echo("x"), timeout=timeout)
