"""Cancelling an operation ends what it started, and nothing else; `creation` has the row on `create`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from sandboxio.models import PIPE, Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["CancellationTests"]

_STREAM = Capability.RUN_COMMAND | Capability.STREAMING


class CancellationTests(SuiteBase):
    """Rows on cancelled executions."""

    @needs(Capability.RUN_COMMAND)
    async def test_cancelling_run_ends_the_whole_tree(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        await self._cancel_once_running(
            sandbox,
            marker,
            self.blocked_tree_size,
            lambda: sandbox.run(self.cmd_block_tree(), env=self.marked(marker)),
        )
        assert await self.count_processes(sandbox, marker) == 0

    @needs(Capability.RUN_CODE)
    async def test_cancelling_run_code_ends_the_whole_tree(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        await self._cancel_once_running(
            sandbox,
            marker,
            self.blocked_code_size,
            lambda: sandbox.run_code(self.code_block_tree(), env=self.marked(marker)),
        )
        assert await self.count_processes(sandbox, marker) == 0

    @needs(_STREAM)
    async def test_cancelling_the_wait_for_a_stream_ends_the_whole_tree(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")

        async def streamed() -> None:
            async with sandbox.stream(self.cmd_block_tree(), env=self.marked(marker)) as process:
                await process.wait()

        await self._cancel_once_running(sandbox, marker, self.blocked_tree_size, streamed)
        assert await self.count_processes(sandbox, marker) == 0

    @needs(Capability.RUN_COMMAND)
    async def test_a_cancelled_run_surfaces_as_the_loops_own_exception(self, sandbox: AsyncSandbox) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            with pytest.raises(anyio.get_cancelled_exc_class()):
                await sandbox.run(self.cmd_block())
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught

    @needs(Capability.RUN_COMMAND)
    async def test_a_sandbox_is_usable_after_a_cancellation(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        await self._cancel_once_running(
            sandbox, marker, 1, lambda: sandbox.run(self.cmd_block(), env=self.marked(marker))
        )
        assert (await sandbox.run(self.cmd_echo("fine"))).stdout == "fine\n"

    @needs(_STREAM)
    async def test_a_cancellation_leaves_other_executions_alone(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=60) as other:
            await self._cancel_once_running(
                sandbox,
                marker,
                self.blocked_tree_size,
                lambda: sandbox.run(self.cmd_block_tree(), env=self.marked(marker)),
            )
            await other.write(b"still here")
            await other.close_stdin()
            assert b"".join([chunk.data async for chunk in other]) == b"still here"

    async def _cancel_once_running(
        self,
        sandbox: AsyncSandbox,
        marker: str,
        processes: int,
        operation: Callable[[], Awaitable[object]],
    ) -> None:
        """Cancel an operation once its tree is up; it must end in bounded time, with no result."""
        scope = anyio.CancelScope()

        async def cancelled() -> None:
            with scope:
                await operation()

        with anyio.fail_after(45):
            async with anyio.create_task_group() as group:
                group.start_soon(cancelled)
                await self.until_processes(sandbox, marker, processes)
                scope.cancel()
        assert scope.cancelled_caught, "the operation ended before it was cancelled"
