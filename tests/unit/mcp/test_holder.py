"""What a holder tells about a loss, and that closing it does not wait for a sandbox that is being made."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from sandboxio import AsyncSandbox, NetworkPolicy, SandboxGone
from sandboxio.mcp.holder import Profile, SandboxHolder
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import FakeBackend

BOUND = 10.0


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def holder(fake: FakeBackend) -> SandboxHolder:
    return SandboxHolder(Profile(fake, NetworkPolicy(), 60))


async def lose(holder: SandboxHolder, fake: FakeBackend) -> None:
    with pytest.raises(SandboxGone):
        async with holder.lease() as lease:
            fake.expire(lease.sandbox)
            await lease.sandbox.run(["true"])


async def note_of(holder: SandboxHolder) -> str:
    async with holder.lease() as lease:
        return lease.note


async def test_a_loss_is_noted_until_somebody_was_told(holder: SandboxHolder, fake: FakeBackend) -> None:
    async with holder:
        await lose(holder, fake)
        note = await note_of(holder)
        assert "This is a new, empty one" in note
        assert await note_of(holder) == note
        holder.told(note)
        assert await note_of(holder) == ""


async def test_who_was_told_of_one_loss_was_not_told_of_the_next(
    holder: SandboxHolder, fake: FakeBackend
) -> None:
    async with holder:
        await lose(holder, fake)
        first = await note_of(holder)
        await lose(holder, fake)
        holder.told(first)
        assert "This is a new, empty one" in await note_of(holder)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)  # which is what the SDK's client is for
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_is_cancelled_leaves_the_note_to_the_next(
    server: MCPServer[Sandboxes], fake: FakeBackend, mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        await client.call_tool("sandbox_info")
        fake.clock.advance(1000)
        assert (await client.call_tool("list_files")).is_error
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "run_command", {"command": "cat /dev/zero"})
                while not any(machine.kernel.processes for machine in fake.sandboxes):
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
        told = await client.call_tool("list_files")
        assert told.structured_content is not None
        assert "This is a new, empty one" in told.structured_content["note"]


class Stalled(FakeBackend):
    """A backend that is still fetching an image, and for ever."""

    begun = 0

    async def create(self, **request: Any) -> AsyncSandbox:
        self.begun += 1
        await anyio.sleep_forever()
        raise AssertionError

    async def has_begun(self) -> None:
        while not self.begun:
            await anyio.sleep(0.01)


async def test_closing_gives_up_a_sandbox_that_is_being_made() -> None:
    backend = Stalled()
    holder = SandboxHolder(Profile(backend, NetworkPolicy(), 60))
    refused: list[SandboxGone] = []

    async def use() -> None:
        try:
            async with holder.lease():
                pytest.fail("there is no sandbox to lease")
        except SandboxGone as exc:
            refused.append(exc)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(use)
            await backend.has_begun()
            await holder.close()
    assert [exc.message for exc in refused] == ["the session is over"] * 2
    assert backend.begun == 1


async def test_a_caller_that_is_cancelled_while_it_closes_is_cancelled_and_not_refused() -> None:
    backend = Stalled()
    holder = SandboxHolder(Profile(backend, NetworkPolicy(), 60))

    async def end(scope: anyio.CancelScope) -> None:
        await backend.has_begun()
        scope.cancel()
        await holder.close()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                group.start_soon(end, scope)
                async with holder.lease():
                    pytest.fail("there is no sandbox to lease")
    assert scope.cancelled_caught


async def test_closing_leaves_nothing_of_a_creation_that_cannot_be_cut_short(
    holder: SandboxHolder, fake: FakeBackend
) -> None:
    async def use() -> None:
        with pytest.raises(SandboxGone):
            async with holder.lease():
                pytest.fail("there is no sandbox to lease")

    with anyio.fail_after(BOUND), fake.slow_creates(0.3):
        async with anyio.create_task_group() as group:
            group.start_soon(use)
            while not fake.sandboxes:
                await anyio.sleep(0.01)
            await holder.close()
            assert not fake.sandboxes
