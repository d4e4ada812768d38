"""Streams: exact bytes, input while it runs, backpressure, and four ways in which nothing is left."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.errors import ConfigurationError, ExecutionTimeout
from sandboxio.models import PIPE, Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["StreamingTests"]

_STREAM = Capability.RUN_COMMAND | Capability.STREAMING
_MANY_BYTES = 64 * 1024 * 1024


class StreamingTests(SuiteBase):
    """Rows on `stream` and `Process`."""

    @needs(_STREAM)
    async def test_a_stream_gives_what_was_written(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_echo("hello")) as process:
            chunks = [chunk async for chunk in process]
        assert b"".join(chunk.data for chunk in chunks) == b"hello\n"
        assert {chunk.stream for chunk in chunks} == {"stdout"}
        assert process.returncode == 0

    @needs(_STREAM)
    async def test_a_stream_tells_standard_error_apart(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_stderr("oops")) as process:
            chunks = [chunk async for chunk in process]
        assert b"".join(chunk.data for chunk in chunks) == b"oops"
        assert {chunk.stream for chunk in chunks} == {"stderr"}

    @needs(_STREAM)
    async def test_order_holds_within_each_stream(self, sandbox: AsyncSandbox) -> None:
        written = {"stdout": b"", "stderr": b""}
        async with sandbox.stream(self.cmd_count_lines_on_both(200)) as process:
            async for chunk in process:
                written[chunk.stream] += chunk.data
        assert written["stdout"] == b"".join(b"out %d\n" % number for number in range(200))
        assert written["stderr"] == b"".join(b"err %d\n" % number for number in range(200))

    @needs(_STREAM, Capability.RAW_OUTPUT)
    async def test_the_bytes_of_a_stream_are_exact(self, sandbox: AsyncSandbox) -> None:
        every_byte = bytes(range(256))
        async with sandbox.stream(self.cmd_bytes(every_byte)) as process:
            assert b"".join([chunk.data async for chunk in process]) == every_byte

    @needs(_STREAM, Capability.RAW_OUTPUT)
    async def test_a_character_written_in_two_parts_stays_whole(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_split_bytes(b"\xe2", b"\x98\x95")) as process:
            assert b"".join([chunk.data async for chunk in process]) == b"\xe2\x98\x95"

    @needs(_STREAM)
    async def test_output_arrives_while_the_command_runs(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(30):
            async with sandbox.stream(self.cmd_echo_then_block_tree("early")) as process:
                async for chunk in process:
                    assert chunk.data.startswith(b"early")
                    assert process.returncode is None
                    break

    @needs(_STREAM)
    async def test_stream_is_no_coroutine_so_forgetting_async_with_fails(self, sandbox: AsyncSandbox) -> None:
        assert not hasattr(sandbox.stream(self.cmd_echo("x")), "__await__")

    @needs(_STREAM)
    async def test_a_process_that_was_not_entered_refuses_to_be_used(self, sandbox: AsyncSandbox) -> None:
        process = sandbox.stream(self.cmd_echo("x"))
        with pytest.raises(ConfigurationError):
            await process.wait()

    @needs(_STREAM)
    async def test_a_cancelled_write_loses_nothing_of_what_it_was_given(self, sandbox: AsyncSandbox) -> None:
        written = bytearray()
        with anyio.fail_after(60):
            async with sandbox.stream(self.cmd_cat_later(1), stdin=PIPE, timeout=50) as process:
                with anyio.move_on_after(0.3):
                    await process.write(b"a" * 400_000)

                async def go_on() -> None:
                    await process.write(b"b" * 50_000)
                    await process.close_stdin()

                async with anyio.create_task_group() as group:
                    group.start_soon(go_on)
                    async for chunk in process:
                        written += chunk.data
        assert bytes(written) == b"a" * 400_000 + b"b" * 50_000

    @needs(_STREAM)
    async def test_the_deadline_of_a_stream_that_nobody_reads_ends_its_tree_and_is_told(
        self, sandbox: AsyncSandbox
    ) -> None:
        marker = unique("marker")
        async with sandbox.stream(self.cmd_block_tree(), timeout=2, env=self.marked(marker)) as process:
            await self.until_processes(sandbox, marker, 1)
            with anyio.fail_after(30):
                while await self.count_processes(sandbox, marker):
                    await anyio.sleep(0.1)
            with pytest.raises(ExecutionTimeout):
                await process.wait()
        assert (await sandbox.run(self.cmd_echo("fine"))).stdout == "fine\n"

    @needs(_STREAM)
    async def test_wait_drains_what_is_unread_and_returns_no_text(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_flood(1_000_000)) as process:
            result = await process.wait()
        assert (result.exit_code, result.stdout, result.stderr, result.streamed) == (0, "", "", True)

    @needs(_STREAM)
    async def test_wait_returns_the_same_every_time(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_echo("x")) as process:
            first = await process.wait()
            assert await process.wait() == first

    @needs(_STREAM)
    async def test_wait_gives_the_exit_code(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_exit(5)) as process:
            assert (await process.wait()).exit_code == 5
        assert process.returncode == 5

    @needs(_STREAM)
    async def test_wait_after_reading_to_the_end_gives_the_exit_code(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_exit(5)) as process:
            async for _ in process:
                pass
            assert (await process.wait()).exit_code == 5

    @needs(_STREAM)
    async def test_input_can_be_given_beforehand(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), stdin=b"given", timeout=20) as process:
            assert b"".join([chunk.data async for chunk in process]) == b"given"

    @needs(_STREAM)
    async def test_input_can_be_written_while_it_runs(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=30) as process:
            await process.write("first ☕\n")
            assert (await anext(process)).data == "first ☕\n".encode()
            await process.write(b"second\n")
            assert (await anext(process)).data == b"second\n"
            await process.close_stdin()
            assert (await process.wait()).exit_code == 0

    @needs(_STREAM)
    async def test_writing_more_than_the_pipes_hold_waits_for_the_reader(self, sandbox: AsyncSandbox) -> None:
        data = b"0123456789abcdef" * 65536
        received = bytearray()
        async with (
            sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=60) as process,
            anyio.create_task_group() as group,
        ):

            async def feed() -> None:
                await process.write(data)
                await process.close_stdin()

            group.start_soon(feed)
            async for chunk in process:
                received += chunk.data
        assert bytes(received) == data

    @needs(_STREAM)
    async def test_two_writers_take_turns(self, sandbox: AsyncSandbox) -> None:
        received = bytearray()
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=60) as process:

            async def feed() -> None:
                async with anyio.create_task_group() as writers:
                    writers.start_soon(process.write, b"a" * 300_000)
                    writers.start_soon(process.write, b"b" * 300_000)
                await process.close_stdin()

            async with anyio.create_task_group() as group:
                group.start_soon(feed)
                async for chunk in process:
                    received += chunk.data
        assert bytes(received) in (
            b"a" * 300_000 + b"b" * 300_000,
            b"b" * 300_000 + b"a" * 300_000,
        )

    @needs(_STREAM)
    async def test_the_input_is_closed_however_late_it_is_read(self, sandbox: AsyncSandbox) -> None:
        received = bytearray()
        async with sandbox.stream(self.cmd_cat_later(4), stdin=PIPE, timeout=50) as process:
            with anyio.move_on_after(0.3):
                await process.write(b"a" * 400_000)

            async with anyio.create_task_group() as group:
                group.start_soon(process.close_stdin)
                async for chunk in process:
                    received += chunk.data
            assert (await process.wait()).exit_code == 0
        assert bytes(received) == b"a" * 400_000

    @needs(_STREAM)
    async def test_closing_the_input_twice_is_no_error(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=20) as process:
            await process.close_stdin()
            await process.close_stdin()
            assert (await process.wait()).exit_code == 0

    @needs(_STREAM)
    async def test_writing_after_the_input_was_closed_is_refused(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), stdin=PIPE, timeout=20) as process:
            await process.close_stdin()
            with pytest.raises(ConfigurationError):
                await process.write(b"more")

    @needs(_STREAM)
    async def test_writing_without_an_open_input_is_refused(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_cat(), timeout=20) as process:
            with pytest.raises(ConfigurationError):
                await process.write(b"any")

    @needs(_STREAM)
    async def test_nothing_is_left_after_an_early_break(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        command = self.cmd_echo_then_block_tree("first")
        with anyio.fail_after(45):
            async with sandbox.stream(command, env=self.marked(marker)) as process:
                async for _ in process:
                    await self.until_processes(sandbox, marker, self.blocked_tree_size)
                    break
        assert await self.count_processes(sandbox, marker) == 0

    @needs(_STREAM)
    async def test_nothing_is_left_after_an_exception(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        with anyio.fail_after(45), pytest.raises(LookupError, match="the caller's own"):
            async with sandbox.stream(self.cmd_block_tree(), env=self.marked(marker)):
                await self.until_processes(sandbox, marker, self.blocked_tree_size)
                raise LookupError("the caller's own")
        assert await self.count_processes(sandbox, marker) == 0

    @needs(_STREAM)
    async def test_nothing_is_left_after_a_cancellation(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        with anyio.fail_after(45), anyio.CancelScope() as scope:
            async with sandbox.stream(self.cmd_block_tree(), env=self.marked(marker)) as process:
                await self.until_processes(sandbox, marker, self.blocked_tree_size)
                scope.cancel()
                await process.wait()
        assert scope.cancelled_caught
        assert await self.count_processes(sandbox, marker) == 0

    @needs(_STREAM)
    async def test_the_leader_is_gone_after_completion(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        async with sandbox.stream(self.cmd_echo("done"), env=self.marked(marker)) as process:
            await process.wait()
            assert await self.count_processes(sandbox, marker) == 0

    @needs(_STREAM)
    async def test_killing_a_process_ends_the_whole_tree(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        with anyio.fail_after(45):
            async with sandbox.stream(self.cmd_block_tree(), env=self.marked(marker)) as process:
                await self.until_processes(sandbox, marker, self.blocked_tree_size)
                await process.kill()
                assert await self.count_processes(sandbox, marker) == 0
                assert (await process.wait()).exit_code == 137

    @needs(_STREAM)
    async def test_killing_a_process_that_has_ended_does_nothing(self, sandbox: AsyncSandbox) -> None:
        async with sandbox.stream(self.cmd_echo("x")) as process:
            first = await process.wait()
            await process.kill()
            assert await process.wait() == first

    @needs(_STREAM)
    async def test_a_background_child_does_not_delay_the_end_of_a_stream(self, sandbox: AsyncSandbox) -> None:
        with anyio.fail_after(20):
            async with sandbox.stream(self.cmd_leave_child("done", holding_output=True)) as process:
                assert b"".join([chunk.data async for chunk in process]) == b"done\n"
                assert process.returncode == 0

    @needs(_STREAM, Capability.FILESYSTEM)
    async def test_a_reader_that_stops_stops_the_writer(self, sandbox: AsyncSandbox) -> None:
        written = unique("all-written")
        received = 0
        async with sandbox.stream(self.cmd_flood_then_touch(_MANY_BYTES, written), timeout=120) as process:
            received += len((await anext(process)).data)
            # The writer needs well below a second for all of it when nothing holds it back.
            await anyio.sleep(1)
            assert not await sandbox.files.exists(written)
            async for chunk in process:
                received += len(chunk.data)
        assert received == _MANY_BYTES
        assert await sandbox.files.exists(written)
