"""Many executions in one sandbox at once, each with its own output, code and input."""

from __future__ import annotations

import anyio
import anyio.to_thread

import sandboxio
from sandboxio.audit import AuditConfig
from sandboxio.models import PIPE, Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs

__all__ = ["ConcurrencyTests"]

_RUN = Capability.RUN_COMMAND
_MANY = 20


class ConcurrencyTests(SuiteBase):
    """Rows on executions at the same time."""

    @needs(_RUN)
    async def test_many_commands_at_once_keep_their_outputs_apart(self, sandbox: AsyncSandbox) -> None:
        outputs: dict[int, str] = {}

        async def execute(number: int) -> None:
            outputs[number] = (await sandbox.run(self.cmd_echo(f"number {number}"), timeout=60)).stdout

        async with anyio.create_task_group() as group:
            for number in range(_MANY):
                group.start_soon(execute, number)
        assert outputs == {number: f"number {number}\n" for number in range(_MANY)}

    @needs(_RUN)
    async def test_many_commands_at_once_keep_their_exit_codes_apart(self, sandbox: AsyncSandbox) -> None:
        codes: dict[int, int] = {}

        async def execute(number: int) -> None:
            codes[number] = (await sandbox.run(self.cmd_exit(number), timeout=60)).exit_code

        async with anyio.create_task_group() as group:
            for number in range(_MANY):
                group.start_soon(execute, number)
        assert codes == {number: number for number in range(_MANY)}

    @needs(_RUN)
    async def test_many_commands_at_once_keep_their_inputs_apart(self, sandbox: AsyncSandbox) -> None:
        outputs: dict[int, str] = {}

        async def execute(number: int) -> None:
            text = f"{number}," * 20_000
            result = await sandbox.run(self.cmd_cat(), stdin=text, timeout=60)
            outputs[number] = "whole" if result.stdout == text else "mixed up"

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(execute, number)
        assert set(outputs.values()) == {"whole"}

    @needs(_RUN, Capability.STREAMING)
    async def test_an_unread_stream_does_not_hold_up_other_executions(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_flood(20_000_000), timeout=60):
            with anyio.fail_after(30):
                assert (await sandbox.run(self.cmd_echo("through"))).stdout == "through\n"

    @needs(_RUN, Capability.STREAMING)
    async def test_two_interactive_processes_run_side_by_side(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(45):
            async with (
                sandbox.stream(self.cmd_cat(), stdin=PIPE) as one,
                sandbox.stream(self.cmd_cat(), stdin=PIPE) as two,
            ):
                await one.write(b"first")
                await two.write(b"second")
                assert (await anext(two)).data == b"second"
                assert (await anext(one)).data == b"first"

    @needs(_RUN)
    async def test_the_synchronous_form_does_the_same_from_a_thread(self) -> None:
        backend = self.make_backend(AuditConfig())

        def execute() -> str:
            with sandboxio.create_sync(backend, template=self.template) as sandbox:
                return sandbox.run(self.cmd_echo("from a thread")).stdout

        with anyio.fail_after(60):
            assert await anyio.to_thread.run_sync(execute) == "from a thread\n"

    @needs(_RUN, Capability.FILESYSTEM)
    async def test_files_and_commands_work_at_the_same_time(self, sandbox: AsyncSandbox, folder: str) -> None:
        async def execute(number: int) -> None:
            await sandbox.files.write(f"{folder}/{number}", str(number))
            result = await sandbox.run(["cat", f"{folder}/{number}"], timeout=60)
            assert result.stdout == str(number)

        async with anyio.create_task_group() as group:
            for number in range(_MANY):
                group.start_soon(execute, number)
        assert len(await sandbox.files.ls(folder)) == _MANY
