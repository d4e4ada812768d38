"""How long a sandbox lives, who shares it, and what a client can stop."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp_types import TextContent

from sandboxio import CreationError, NetworkPolicy, SandboxGone
from sandboxio.mcp.holder import Profile, SandboxHolder
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import FakeBackend

BOUND = 10.0
ENDLESS = {"command": "cat /dev/zero"}
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def becomes(condition: object) -> None:
    assert callable(condition)
    with anyio.fail_after(BOUND):
        while not condition():
            await anyio.sleep(0.01)


@MODES
async def test_the_sandbox_is_made_at_the_first_call_and_ended_with_the_session(
    server: MCPServer[Sandboxes], fake: FakeBackend, mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        assert not fake.sandboxes
        await client.call_tool("run_command", {"command": "touch here"})
        result = await client.call_tool("run_command", {"command": "ls"})
        assert result.structured_content is not None
        assert result.structured_content["stdout"] == "here\n"
        assert len(fake.sandboxes) == 1
    assert not fake.sandboxes


async def test_first_calls_at_the_same_time_share_one_sandbox(
    server: MCPServer[Sandboxes], fake: FakeBackend
) -> None:
    async with Client(server) as client, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(client.call_tool, "run_command", {"command": "true"})
    assert [call.operation for call in fake.calls].count("create") == 1


@MODES
async def test_a_cancelled_call_ends_its_processes_and_keeps_the_sandbox(
    server: MCPServer[Sandboxes], fake: FakeBackend, mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        await client.call_tool("run_command", {"command": "touch kept"})
        (machine,) = fake.sandboxes
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "run_command", ENDLESS)
            await becomes(lambda: machine.kernel.processes)
            group.cancel_scope.cancel()
        await becomes(lambda: not machine.kernel.processes)
        result = await client.call_tool("run_command", {"command": "ls"})
        assert result.structured_content is not None
        assert result.structured_content["stdout"] == "kept\n"


@MODES
async def test_a_client_that_waits_no_longer_ends_the_processes(
    server: MCPServer[Sandboxes], fake: FakeBackend, mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        await client.call_tool("sandbox_info")
        (machine,) = fake.sandboxes
        with pytest.raises(MCPError):
            await client.call_tool("run_command", ENDLESS, read_timeout_seconds=0.3)
        await becomes(lambda: not machine.kernel.processes)


async def test_a_cancelled_first_call_leaves_no_sandbox(
    server: MCPServer[Sandboxes], fake: FakeBackend
) -> None:
    async with Client(server) as client:
        with fake.slow_creates(0.3):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "sandbox_info")
                await becomes(lambda: fake.sandboxes)
                group.cancel_scope.cancel()
        await becomes(lambda: not fake.sandboxes)
        result = await client.call_tool("sandbox_info")
        assert not result.is_error


async def test_a_failed_creation_is_told_and_tried_again_with_the_next_call(
    server: MCPServer[Sandboxes], fake: FakeBackend
) -> None:
    async with Client(server) as client:
        with fake.failing_creates(CreationError("no room")):
            result = await client.call_tool("sandbox_info")
            (content,) = result.content
            assert isinstance(content, TextContent)
            assert result.is_error
            assert "[SBX_E1201] no room" in content.text
        assert not (await client.call_tool("sandbox_info")).is_error


async def test_long_calls_report_progress(server: MCPServer[Sandboxes], fake: FakeBackend) -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with Client(server) as client:
        with fake.slow_creates(0.2):
            await client.call_tool("sandbox_info", progress_callback=note)
        starting = len(reports)
        with pytest.raises(MCPError):
            await client.call_tool(
                "run_command",
                {**ENDLESS, "timeout_seconds": 60},
                read_timeout_seconds=0.3,
                progress_callback=note,
            )
    assert starting
    assert all(message and message.startswith("starting the sandbox") for _, _, message in reports[:starting])
    running = reports[starting:]
    assert {(total, message and message.split(",")[0]) for _, total, message in running} == {
        (60.0, "running")
    }
    assert [progress for progress, *_ in running] == sorted({progress for progress, *_ in running})


async def test_after_an_early_end_the_call_fails_and_the_next_one_gets_a_new_sandbox_and_is_told(
    server: MCPServer[Sandboxes], fake: FakeBackend
) -> None:
    async with Client(server) as client:
        await client.call_tool("sandbox_info")
        fake.clock.advance(1000)
        failed = await client.call_tool("list_files")
        (content,) = failed.content
        assert isinstance(content, TextContent)
        assert failed.is_error
        assert "[SBX_E1204]" in content.text
        assert "Fix: call the tool again" in content.text
        told = await client.call_tool("list_files")
        assert told.structured_content is not None
        assert "This is a new, empty one" in told.structured_content["note"]
        quiet = await client.call_tool("list_files")
        assert quiet.structured_content is not None
        assert quiet.structured_content["note"] == ""
    assert not fake.sandboxes


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_when_the_lifetime_is_over_the_next_lease_has_a_new_sandbox_and_a_note(
    fake: FakeBackend,
) -> None:
    clock = Clock()
    async with SandboxHolder(Profile(fake, NetworkPolicy(), 60), clock=clock) as holder:
        async with holder.lease() as first:
            assert (first.note, first.remaining) == ("", 60)
        clock.now = 59.0
        async with holder.lease() as second:
            assert (second.sandbox.id, second.remaining) == (first.sandbox.id, 1)
        clock.now = 60.0
        async with holder.lease() as third:
            assert third.sandbox.id != first.sandbox.id
            assert "its lifetime of 60 s is over" in third.note
            assert len(fake.sandboxes) == 1
    assert not fake.sandboxes


async def test_calls_that_lose_the_same_sandbox_together_make_one_new_one(fake: FakeBackend) -> None:
    async with SandboxHolder(Profile(fake, NetworkPolicy(), 60)) as holder:

        async def lose() -> None:
            with pytest.raises(SandboxGone):
                async with holder.lease() as lease:
                    await anyio.sleep(0.01)
                    if lease.sandbox.id in {machine.id for machine in fake.sandboxes}:
                        fake.expire(lease.sandbox)
                    await lease.sandbox.run(["true"])

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(lose)
        async with holder.lease():
            pass
    assert [call.operation for call in fake.calls].count("create") == 2


async def test_a_closed_holder_makes_no_sandbox(fake: FakeBackend) -> None:
    holder = SandboxHolder(Profile(fake, NetworkPolicy(), 60))
    await holder.close()
    with pytest.raises(SandboxGone):
        async with holder.lease():
            pass
    assert not fake.calls


async def test_a_holder_ends_its_sandbox_while_it_is_cancelled(fake: FakeBackend) -> None:
    with anyio.CancelScope() as scope:
        async with SandboxHolder(Profile(fake, NetworkPolicy(), 60)) as holder:
            async with holder.lease():
                assert fake.sandboxes
            scope.cancel()
            await anyio.sleep_forever()
    assert not fake.sandboxes
