"""Ownership: who ends a sandbox, how one that was lost is found, and what happens when ending fails."""

from __future__ import annotations

import warnings

import pytest

from sandboxio.errors import ConfigurationError, ConnectError, OrphanedSandboxWarning, SandboxGone
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend, ReapableBackend
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["OwnershipTests"]


class OwnershipTests(SuiteBase):
    """Rows on `detach`, `connect`, labels, reaping and failing teardown."""

    async def test_a_detached_sandbox_outlives_its_context(self, backend: Backend) -> None:
        labels = {"purpose": unique("detach")}
        async with await self.create(backend, metadata=labels) as sandbox:
            assert await sandbox.detach() == sandbox.id
        try:
            assert await self.count_sandboxes(backend, labels) > 0
        finally:
            await (await backend.connect(sandbox.id)).kill()
        assert await self.count_sandboxes(backend, labels) == 0

    @needs(Capability.RUN_COMMAND, Capability.FILESYSTEM)
    async def test_a_connected_handle_reaches_the_same_sandbox(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        await fresh.files.write("file", b"same")
        async with await backend.connect(fresh.id) as connected:
            assert connected.id == fresh.id
            assert (await connected.run(["cat", "file"])).stdout == "same"

    @needs(Capability.RUN_COMMAND)
    async def test_leaving_a_connected_handle_ends_nothing(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        async with await backend.connect(fresh.id):
            pass
        assert (await fresh.run(self.cmd_echo("alive"))).stdout == "alive\n"

    @needs(Capability.RUN_COMMAND)
    async def test_leaving_a_connected_handle_by_an_exception_ends_nothing(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        with pytest.raises(LookupError, match="the caller's own"):
            async with await backend.connect(fresh.id):
                raise LookupError("the caller's own")
        assert (await fresh.run(self.cmd_echo("alive"))).stdout == "alive\n"

    @needs(Capability.RUN_COMMAND)
    async def test_killing_through_a_connected_handle_ends_the_sandbox(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        await (await backend.connect(fresh.id)).kill()
        with pytest.raises(SandboxGone):
            await fresh.run(self.cmd_echo("too late"))

    async def test_a_connected_handle_knows_what_was_declared_at_creation(self, backend: Backend) -> None:
        metadata = {"purpose": unique("connect"), "tenant_id": "tenant-1"}
        async with (
            await self.create(backend, metadata=metadata) as created,
            await backend.connect(created.id) as connected,
        ):
            assert dict(connected.metadata) == metadata
            assert connected.capabilities == created.capabilities
            assert connected.isolation is created.isolation

    @needs(Capability.RUN_COMMAND)
    async def test_variables_given_at_creation_reach_a_connected_handle(self, backend: Backend) -> None:
        async with (
            await self.create(backend, env={"SBX_ALWAYS": "there"}) as created,
            await backend.connect(created.id) as connected,
        ):
            result = await connected.run(self.cmd_print_variable("SBX_ALWAYS"))
        assert result.stdout == "there"

    @needs(Capability.RUN_COMMAND)
    async def test_a_connected_handle_ends_with_the_lifetime_of_its_sandbox(self, backend: Backend) -> None:
        async with (
            await self.create(backend, timeout=self.short_lifetime) as created,
            await backend.connect(created.id) as connected,
        ):
            await self.pass_time(created, self.short_lifetime + 1)
            with pytest.raises(SandboxGone):
                await connected.run(self.cmd_echo("too late"))

    async def test_connecting_to_a_killed_sandbox_is_sandbox_gone(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        await sandbox.kill()
        with pytest.raises(SandboxGone):
            await backend.connect(sandbox.id)

    async def test_the_metadata_is_on_the_sandbox(self, backend: Backend) -> None:
        metadata = {"purpose": unique("metadata")}
        async with await self.create(backend, metadata=metadata) as sandbox:
            assert dict(sandbox.metadata) == metadata

    async def test_metadata_and_our_own_labels_reach_the_provider(self, backend: Backend) -> None:
        metadata = {"purpose": unique("labels"), "tenant_id": "tenant-1"}
        async with await self.create(backend, metadata=metadata) as sandbox:
            labels = await self.provider_labels(sandbox)
        assert metadata.items() <= dict(labels).items()
        assert labels["sandboxio.managed"] == "true"
        assert labels["sandboxio.version"]
        assert labels["sandboxio.creation"]

    @pytest.mark.parametrize("key", ["", "sandboxio.managed"])
    async def test_a_label_of_ours_cannot_be_given(self, backend: Backend, key: str) -> None:
        with pytest.raises(ConfigurationError):
            await self.create(backend, metadata={key: "x"})

    async def test_a_sandbox_is_listed_with_its_metadata(self, backend: Backend) -> None:
        reapable = self._reapable(backend)
        metadata = {"purpose": unique("list")}
        async with await self.create(backend, metadata=metadata) as sandbox:
            (listed,) = [found for found in await reapable.list_managed() if found.id == sandbox.id]
            assert dict(listed.metadata) == metadata
            assert listed.backend == backend.name

    async def test_a_killed_sandbox_is_not_listed(self, backend: Backend) -> None:
        reapable = self._reapable(backend)
        sandbox = await self.create(backend)
        await sandbox.kill()
        assert sandbox.id not in [found.id for found in await reapable.list_managed()]

    @needs(Capability.RUN_COMMAND)
    async def test_reaping_ends_a_sandbox(self, backend: Backend) -> None:
        reapable = self._reapable(backend)
        labels = {"purpose": unique("reap")}
        sandbox = await self.create(backend, metadata=labels)
        await reapable.kill_managed(sandbox.id)
        assert await self.count_sandboxes(backend, labels) == 0
        with pytest.raises(SandboxGone):
            await sandbox.run(self.cmd_echo("too late"))

    async def test_a_kill_that_the_provider_refuses_names_the_way_out(self, fresh: AsyncSandbox) -> None:
        async with self.failing_kill(fresh):
            with pytest.raises(ConnectError, match="could not be ended") as caught:
                await fresh.kill()
        assert "sandboxio reap --kill" in caught.value.hint
        assert caught.value.__cause__ is not None

    async def test_a_kill_that_was_refused_can_be_repeated(self, backend: Backend) -> None:
        labels = {"purpose": unique("repeat")}
        sandbox = await self.create(backend, metadata=labels)
        async with self.failing_kill(sandbox):
            with pytest.raises(ConnectError):
                await sandbox.kill()
        await sandbox.kill()
        assert await self.count_sandboxes(backend, labels) == 0

    async def test_a_teardown_that_fails_warns(self, backend: Backend) -> None:
        sandbox = await self.create(backend)
        async with self.failing_kill(sandbox):
            with pytest.warns(OrphanedSandboxWarning, match=sandbox.id):
                async with sandbox:
                    pass
        await sandbox.kill()

    async def test_a_teardown_that_fails_does_not_replace_the_callers_exception(
        self, backend: Backend
    ) -> None:
        sandbox = await self.create(backend)
        async with self.failing_kill(sandbox):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OrphanedSandboxWarning)
                with pytest.raises(LookupError, match="the caller's own"):
                    async with sandbox:
                        raise LookupError("the caller's own")
        await sandbox.kill()

    def _reapable(self, backend: Backend) -> ReapableBackend:
        if not isinstance(backend, ReapableBackend):
            pytest.skip("the backend does not list what it made")
        return backend
