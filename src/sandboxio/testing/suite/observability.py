"""Records: one for each operation, whole, and honest about how it ended."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from sandboxio.audit import AuditEvent
from sandboxio.errors import ExecutionTimeout, PathNotFound, SandboxGone
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import RecordingSink, SuiteBase, needs, unique

__all__ = ["ObservabilityTests"]

_RUN = Capability.RUN_COMMAND


class ObservabilityTests(SuiteBase):
    """Rows on audit events, meters and reprs."""

    async def test_a_life_is_recorded_from_its_creation_to_its_end(
        self, backend: Backend, events: RecordingSink
    ) -> None:
        async with await self.create(backend) as sandbox:
            pass
        recorded = events.of(sandbox)
        assert [event.event for event in recorded] == ["create", "kill"]
        for event in recorded:
            assert event.backend == backend.name
            assert event.isolation == sandbox.isolation.value
            assert event.duration_ms >= 0
            assert event.error_code is None

    async def test_tenant_and_session_come_from_the_metadata(
        self, backend: Backend, events: RecordingSink
    ) -> None:
        metadata = {"tenant_id": "tenant-1", "session_id": "session-2"}
        async with await self.create(backend, metadata=metadata) as sandbox:
            pass
        for event in events.of(sandbox):
            assert (event.tenant_id, event.session_id) == ("tenant-1", "session-2")

    @needs(_RUN)
    async def test_a_command_is_one_record_with_its_arguments_and_bytes(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        await fresh.run(["sh", "-c", "cat"], stdin=b"12345")
        event = _only(events, fresh, "run")
        assert event.argv == ("sh", "-c", "cat")
        assert (event.bytes_in, event.bytes_out) == (5, 5)
        assert event.error_code is None

    @needs(_RUN)
    async def test_the_exit_code_of_a_command_is_recorded(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        await fresh.run(self.cmd_exit(3))
        assert _only(events, fresh, "run").exit_code == 3

    @needs(_RUN, Capability.STREAMING)
    async def test_a_stream_is_one_record_with_its_bytes(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        async with fresh.stream(self.cmd_echo("1234")) as process:
            await process.wait()
        event = _only(events, fresh, "stream")
        assert (event.bytes_in, event.bytes_out) == (0, 5)

    @needs(Capability.RUN_CODE)
    async def test_code_is_recorded_by_its_hash_alone(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        code = self.code_print("hello")
        await fresh.run_code(code)
        event = _only(events, fresh, "run_code")
        assert event.code_sha256 == hashlib.sha256(code.encode()).hexdigest()
        assert event.code is None
        assert "hello" not in repr(event)

    @needs(_RUN)
    async def test_a_failure_is_recorded_by_its_code(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        with pytest.raises(ExecutionTimeout):
            await fresh.run(self.cmd_hang(), timeout=0.2)
        event = _only(events, fresh, "run")
        assert (event.error_code, event.exit_code) == (ExecutionTimeout.code, None)

    @needs(_RUN)
    async def test_a_cancellation_is_recorded_as_one(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        marker = unique("marker")
        async with anyio.create_task_group() as group:

            async def blocked() -> None:
                await fresh.run(self.cmd_block(), env=self.marked(marker))

            group.start_soon(blocked)
            await self.until_processes(fresh, marker, 1)
            group.cancel_scope.cancel()
        blocked_runs = [event for event in events.of(fresh) if event.argv == tuple(self.cmd_block())]
        assert [event.error_code for event in blocked_runs] == ["cancelled"]

    @needs(Capability.FILESYSTEM)
    async def test_file_operations_are_recorded(self, fresh: AsyncSandbox, events: RecordingSink) -> None:
        await fresh.files.write("file", b"12345")
        await fresh.files.read("file")
        with pytest.raises(PathNotFound):
            await fresh.files.read("missing")
        assert _only(events, fresh, "files.write").bytes_in == 5
        read, failed = [event for event in events.of(fresh) if event.event == "files.read"]
        assert (read.bytes_out, read.error_code) == (5, None)
        assert failed.error_code == PathNotFound.code

    @needs(_RUN)
    async def test_an_operation_on_a_sandbox_that_ended_is_recorded(
        self, fresh: AsyncSandbox, events: RecordingSink
    ) -> None:
        await fresh.kill()
        with pytest.raises(SandboxGone):
            await fresh.run(self.cmd_echo("x"))
        assert _only(events, fresh, "run").error_code == SandboxGone.code

    async def test_a_repr_tells_the_backend_the_tier_and_the_state(self, backend: Backend) -> None:
        async with await self.create(backend) as sandbox:
            running = repr(sandbox)
        assert backend.name in running
        assert sandbox.id[:12] in running
        assert sandbox.isolation.value in running
        assert repr(sandbox) != running


def _only(events: RecordingSink, sandbox: AsyncSandbox, name: str) -> AuditEvent:
    """The one event of this name."""
    (event,) = [event for event in events.of(sandbox) if event.event == name]
    return event
