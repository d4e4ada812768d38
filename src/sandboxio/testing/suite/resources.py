"""Caps: in force, never unset, and told apart from an ordinary end when they strike."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.errors import CapabilityNotSupported, ResourceLimitExceeded
from sandboxio.models import Capability, Resources
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, undeclared, unique

__all__ = ["ResourceTests"]

_RUN = Capability.RUN_COMMAND
_SMALL = Resources(cpu=0.5, memory_mb=128, disk_mb=32)


class ResourceTests(SuiteBase):
    """Rows on `Resources`."""

    async def test_no_cap_is_ever_unset(self, sandbox: AsyncSandbox) -> None:
        applied = await self.applied_resources(sandbox)
        assert None not in (applied.cpu, applied.memory_mb, applied.disk_mb)

    async def test_caps_that_were_asked_for_are_applied(self, backend: Backend) -> None:
        self._require_caps()
        async with await self.create(backend, resources=_SMALL) as sandbox:
            applied = await self.applied_resources(sandbox)
        assert (applied.cpu, applied.memory_mb, applied.disk_mb) == (0.5, 128, 32)

    async def test_caps_that_a_template_fixes_are_refused_and_create_nothing(self, backend: Backend) -> None:
        if self.resource_caps_supported:
            pytest.skip("caps can be set here")
        labels = {"purpose": unique("refused")}
        with pytest.raises(CapabilityNotSupported):
            await self.create(backend, resources=_SMALL, metadata=labels)
        assert await self.count_sandboxes(backend, labels) == 0

    @undeclared(Capability.GPU)
    async def test_a_gpu_that_is_not_declared_is_refused_and_creates_nothing(self, backend: Backend) -> None:
        labels = {"purpose": unique("refused")}
        with pytest.raises(CapabilityNotSupported, match="GPU"):
            await self.create(backend, resources=Resources(gpu="any"), metadata=labels)
        assert await self.count_sandboxes(backend, labels) == 0

    @needs(_RUN)
    async def test_a_memory_hog_is_a_resource_limit_exceeded_that_names_the_cap(
        self, backend: Backend
    ) -> None:
        self._require_caps()
        async with await self.create(backend, resources=_SMALL) as sandbox:
            with pytest.raises(ResourceLimitExceeded, match="128") as caught:
                await sandbox.run(self.cmd_hog_memory(), timeout=60)
        assert caught.value.partial is not None
        assert caught.value.partial.oom_killed
        assert caught.value.partial.exit_code == -1

    @needs(_RUN)
    async def test_a_memory_hog_behind_a_shell_is_told_by_the_result(self, backend: Backend) -> None:
        self._require_caps()
        async with await self.create(backend, resources=_SMALL) as sandbox:
            result = await sandbox.run(self.cmd_hog_memory_behind_shell(), timeout=60)
        assert (result.exit_code, result.stdout, result.oom_killed) == (0, "survived\n", True)

    @needs(_RUN)
    async def test_an_execution_beside_a_memory_hog_succeeds(self, backend: Backend) -> None:
        self._require_caps()
        outputs: list[str] = []
        async with await self.create(backend, resources=_SMALL) as sandbox:

            async def innocent() -> None:
                outputs.append((await sandbox.run(self.cmd_echo_later("unharmed", 1), timeout=60)).stdout)

            async with anyio.create_task_group() as group:
                group.start_soon(innocent)
                with pytest.raises(ResourceLimitExceeded):
                    await sandbox.run(self.cmd_hog_memory(), timeout=60)
        assert outputs == ["unharmed\n"]

    @needs(_RUN)
    async def test_an_execution_after_a_memory_hog_is_not_said_to_be_killed(self, backend: Backend) -> None:
        self._require_caps()
        async with await self.create(backend, resources=_SMALL) as sandbox:
            with pytest.raises(ResourceLimitExceeded):
                await sandbox.run(self.cmd_hog_memory(), timeout=60)
            result = await sandbox.run(self.cmd_exit(137))
        assert (result.exit_code, result.oom_killed) == (137, False)

    @needs(_RUN)
    async def test_a_full_disk_is_an_error_in_the_sandbox_and_not_its_end(self, backend: Backend) -> None:
        self._require_caps()
        async with await self.create(backend, resources=_SMALL) as sandbox:
            filled = await sandbox.run(self.cmd_fill_disk(200_000_000, "big"), timeout=60)
            assert "no space left" in filled.stderr.lower()
            assert (await sandbox.run(self.cmd_echo("alive"))).stdout == "alive\n"

    def _require_caps(self) -> None:
        if not self.resource_caps_supported:
            pytest.skip("the template fixes the caps")
