"""A creation that is interrupted, or that fails, leaves nothing behind."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, unique
from sandboxio.testing.suite.cancel_points import cancel_at

__all__ = ["CreationTests"]


class CreationTests(SuiteBase):
    """Rows on cancelled and concurrent creations."""

    async def test_a_creation_cancelled_on_its_way_leaves_nothing_behind(self, backend: Backend) -> None:
        labels = {"purpose": unique("cancelled")}
        async with self.slow_create(backend):
            with anyio.move_on_after(0.1) as scope:
                sandbox = await self.create(backend, metadata=labels)
                await sandbox.kill()
        assert scope.cancelled_caught
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_a_cancelled_creation_surfaces_as_the_loops_own_exception(self, backend: Backend) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            with pytest.raises(anyio.get_cancelled_exc_class()):
                await self.create(backend)
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught

    async def test_a_creation_cancelled_at_any_await_leaves_nothing_behind(self, backend: Backend) -> None:
        sandbox, awaits = await cancel_at(0, self.create(backend))
        assert sandbox is not None
        await sandbox.kill()
        stride = max(1, awaits // self.cancellation_points)
        for point in range(1, awaits + 2, stride):
            labels = {"purpose": unique(f"await-{point}")}
            sandbox, _ = await cancel_at(point, self.create(backend, metadata=labels))
            if sandbox is not None:
                await sandbox.kill()
            left = await self.count_sandboxes(backend, labels)
            assert left == 0, f"{left} left behind by a cancellation at await {point} of {awaits}"

    async def test_sandboxes_can_be_created_at_the_same_time(self, backend: Backend) -> None:
        created: list[AsyncSandbox] = []

        async def create() -> None:
            created.append(await self.create(backend))

        try:
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(create)
            assert len({sandbox.id for sandbox in created}) == 4
        finally:
            with anyio.CancelScope(shield=True):
                for sandbox in created:
                    await sandbox.kill()
