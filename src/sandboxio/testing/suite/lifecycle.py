"""A sandbox's life: usable when created, ended when left, gone for good, and never beyond its lifetime."""

from __future__ import annotations

import math

import anyio
import pytest

from sandboxio.errors import ConfigurationError, ExecutionTimeout, SandboxGone
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["LifecycleTests"]


class LifecycleTests(SuiteBase):
    """Rows on `create`, `kill`, the context manager and the lifetime."""

    @needs(Capability.RUN_COMMAND)
    async def test_a_created_sandbox_is_usable_at_once(self, fresh: AsyncSandbox) -> None:
        assert (await fresh.run(self.cmd_echo("ready"))).stdout == "ready\n"

    async def test_every_sandbox_has_an_id_of_its_own(
        self, sandbox: AsyncSandbox, fresh: AsyncSandbox
    ) -> None:
        assert sandbox.id
        assert fresh.id
        assert sandbox.id != fresh.id

    async def test_a_sandbox_names_its_backend(self, sandbox: AsyncSandbox, backend: Backend) -> None:
        assert sandbox.backend == backend.name

    async def test_leaving_the_context_ends_the_sandbox(self, backend: Backend) -> None:
        labels = {"purpose": unique("leave")}
        async with await self.create(backend, metadata=labels):
            assert await self.count_sandboxes(backend, labels) > 0
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_leaving_the_context_by_an_exception_ends_the_sandbox(self, backend: Backend) -> None:
        labels = {"purpose": unique("raise")}
        with pytest.raises(LookupError, match="the caller's own"):
            async with await self.create(backend, metadata=labels):
                raise LookupError("the caller's own")
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_leaving_the_context_by_a_cancellation_ends_the_sandbox(self, backend: Backend) -> None:
        labels = {"purpose": unique("cancel")}
        with anyio.CancelScope() as scope:
            async with await self.create(backend, metadata=labels):
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_kill_ends_the_sandbox(self, backend: Backend) -> None:
        labels = {"purpose": unique("kill")}
        sandbox = await self.create(backend, metadata=labels)
        await sandbox.kill()
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_killing_twice_is_no_error(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        await sandbox.kill()

    async def test_kill_works_shielded_in_a_cancelled_scope(self, backend: Backend) -> None:
        labels = {"purpose": unique("shield")}
        sandbox = await self.create(backend, metadata=labels)
        with anyio.CancelScope() as scope:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                await sandbox.kill()
        assert await self.count_sandboxes(backend, labels) == 0

    @needs(Capability.RUN_COMMAND)
    async def test_run_in_a_killed_sandbox_is_sandbox_gone(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        with pytest.raises(SandboxGone):
            await sandbox.run(self.cmd_echo("too late"))

    @needs(Capability.RUN_CODE)
    async def test_run_code_in_a_killed_sandbox_is_sandbox_gone(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        with pytest.raises(SandboxGone):
            await sandbox.run_code(self.code_print("too late"))

    @needs(Capability.RUN_COMMAND, Capability.STREAMING)
    async def test_stream_in_a_killed_sandbox_is_sandbox_gone(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        with pytest.raises(SandboxGone):
            async with sandbox.stream(self.cmd_echo("too late")):
                pass

    @needs(Capability.FILESYSTEM)
    async def test_files_of_a_killed_sandbox_are_sandbox_gone(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        with pytest.raises(SandboxGone):
            await sandbox.files.ls()

    @needs(Capability.RUN_COMMAND)
    async def test_a_killed_sandbox_takes_its_running_executions_along(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        marker = unique("marker")
        async with anyio.create_task_group() as group:

            async def blocked() -> None:
                with pytest.raises(SandboxGone):
                    await sandbox.run(self.cmd_block(), env=self.marked(marker))

            group.start_soon(blocked)
            await self.until_processes(sandbox, marker, 1)
            with anyio.fail_after(20):
                await sandbox.kill()

    @needs(Capability.RUN_COMMAND)
    async def test_an_idle_sandbox_is_gone_when_its_lifetime_is_over(self, backend: Backend) -> None:
        async with await self.create(backend, timeout=self.short_lifetime) as sandbox:
            await self.pass_time(sandbox, self.short_lifetime + 1)
            with pytest.raises(SandboxGone):
                await sandbox.run(self.cmd_echo("too late"))

    async def test_the_provider_ends_a_sandbox_whose_lifetime_is_over(self, backend: Backend) -> None:
        labels = {"purpose": unique("lifetime")}
        sandbox = await self.create(backend, timeout=self.short_lifetime, metadata=labels)
        assert await self.count_sandboxes(backend, labels) > 0
        await self.pass_time(sandbox, self.short_lifetime)
        with anyio.fail_after(10):
            while await self.count_sandboxes(backend, labels) > 0:
                await anyio.sleep(0.05)

    @needs(Capability.RUN_COMMAND)
    async def test_an_inherited_timeout_ends_before_the_lifetime_does(self, backend: Backend) -> None:
        async with await self.create(backend, timeout=self.short_lifetime) as sandbox:
            with pytest.raises(ExecutionTimeout):
                await sandbox.run(self.cmd_hang())

    @needs(Capability.RUN_COMMAND)
    async def test_an_execution_beyond_the_lifetime_is_cut_off_as_sandbox_gone(
        self, backend: Backend
    ) -> None:
        async with await self.create(backend, timeout=self.short_lifetime) as sandbox:
            with pytest.raises(SandboxGone):
                await sandbox.run(self.cmd_hang(), timeout=60)

    @needs(Capability.RUN_COMMAND)
    async def test_a_sandbox_that_the_provider_ended_is_gone(self, fresh: AsyncSandbox) -> None:
        await self.expire(fresh)
        with pytest.raises(SandboxGone):
            await fresh.run(self.cmd_echo("too late"))

    @needs(Capability.FILESYSTEM)
    async def test_files_of_a_sandbox_that_the_provider_ended_are_gone(self, fresh: AsyncSandbox) -> None:
        await self.expire(fresh)
        with pytest.raises(SandboxGone):
            await fresh.files.read("any")

    @needs(Capability.RUN_COMMAND)
    async def test_an_execution_during_which_the_sandbox_vanishes_is_sandbox_gone(
        self, fresh: AsyncSandbox
    ) -> None:
        marker = unique("marker")
        async with anyio.create_task_group() as group:

            async def blocked() -> None:
                with anyio.fail_after(30), pytest.raises(SandboxGone):
                    await fresh.run(self.cmd_block(), env=self.marked(marker))

            group.start_soon(blocked)
            await self.until_processes(fresh, marker, 1)
            await self.expire(fresh)

    async def test_killing_a_sandbox_that_the_provider_ended_is_no_error(self, fresh: AsyncSandbox) -> None:
        await self.expire(fresh)
        await fresh.kill()

    @pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf])
    async def test_a_lifetime_that_is_not_positive_and_finite_is_refused(
        self, backend: Backend, timeout: float
    ) -> None:
        labels = {"purpose": unique("refused")}
        with pytest.raises(ConfigurationError):
            await self.create(backend, timeout=timeout, metadata=labels)
        assert await self.count_sandboxes(backend, labels) == 0
