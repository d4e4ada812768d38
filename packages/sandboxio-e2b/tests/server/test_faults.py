"""Every fault, and what the real SDK makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from e2b.exceptions import (
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    ServiceBusyException,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox
from e2b_server.faults import Cut, Expire, Fault, Lose, OmitEnd, Refuse, Silence, Slow
from e2b_server.server import E2BServer
from stand_in_machine import Boots, StandInMachine

pytestmark = pytest.mark.e2b

Call = Callable[[AsyncSandbox], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "info": lambda sandbox: sandbox.get_info(),
    "start": lambda sandbox: sandbox.commands.run("true"),
    "stat": lambda sandbox: sandbox.files.get_info("x"),
    "read": lambda sandbox: sandbox.files.read("x"),
    "write": lambda sandbox: sandbox.files.write("x", b""),
    "execute": lambda sandbox: sandbox.run_code("say hi"),
    "open_context": lambda sandbox: sandbox.create_code_context(),
}


@pytest.mark.parametrize(
    ("operation", "status", "expected"),
    [
        ("info", 400, SandboxException),
        ("info", 401, AuthenticationException),
        ("info", 404, SandboxNotFoundException),
        ("info", 429, RateLimitException),
        ("info", 500, SandboxException),
        ("info", 502, SandboxException),
        ("info", 503, ServiceBusyException),
        ("info", 504, SandboxException),
        ("start", 400, InvalidArgumentException),
        ("start", 401, AuthenticationException),
        ("start", 404, NotFoundException),
        ("start", 413, RateLimitException),
        ("start", 429, RateLimitException),
        ("start", 502, SandboxUnreachableException),
        ("start", 503, SandboxUnreachableException),
        ("start", 504, TimeoutException),
        ("start", 507, SandboxException),
        ("stat", 404, FileNotFoundException),
        ("stat", 503, SandboxUnreachableException),
        ("read", 401, AuthenticationException),
        ("read", 404, FileNotFoundException),
        ("read", 502, SandboxUnreachableException),
        ("write", 413, SandboxException),
        ("write", 429, RateLimitException),
        ("write", 507, NotEnoughSpaceException),
        ("execute", 404, NotFoundException),
        ("execute", 429, SandboxException),
        ("execute", 502, TimeoutException),
        ("open_context", 404, NotFoundException),
        ("open_context", 500, SandboxException),
        ("open_context", 502, TimeoutException),
    ],
)
async def test_a_status_becomes_its_exception(
    server: E2BServer, sandbox: AsyncSandbox, operation: str, status: int, expected: type[Exception]
) -> None:
    with server.misbehave(Fault(operation, Refuse(status))), pytest.raises(expected) as caught:
        await CALLS[operation](sandbox)
    assert caught.type is expected


async def test_a_dead_sandbox_is_recognised_by_its_message(server: E2BServer, sandbox: AsyncSandbox) -> None:
    gone = Fault("any", Refuse(502, "The sandbox was not found"))
    for call in (CALLS["start"], CALLS["read"]):
        with server.misbehave(gone), pytest.raises(SandboxNotRunningException):
            await call(sandbox)


async def test_a_refused_create_makes_nothing(server: E2BServer, boots: Boots) -> None:
    made = len(boots.machines)
    with server.misbehave(Fault("create", Refuse(429))), pytest.raises(RateLimitException):
        await AsyncSandbox.create(timeout=60, retries=0, **server.connection)
    assert len(boots.machines) == made


async def test_a_retry_after_a_passing_fault_succeeds(server: E2BServer) -> None:
    before = server.requests
    with server.misbehave(Fault("create", Refuse(503, retry_after=0), times=2)):
        sandbox = await AsyncSandbox.create(timeout=60, retries=3, **server.connection)
    assert server.requests["create"] - before["create"] == 3
    await sandbox.kill()


async def test_a_body_that_is_not_json_leaks(server: E2BServer, sandbox: AsyncSandbox) -> None:
    page = Fault("info", Refuse(500, body="<html>oops</html>"))
    with server.misbehave(page), pytest.raises(json.JSONDecodeError):
        await sandbox.get_info()


async def test_a_refused_kill_leaves_the_sandbox(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("kill", Refuse(500))), pytest.raises(SandboxException):
        await sandbox.kill()
    assert sandbox.sandbox_id in [each.id for each in server.sandboxes()]


async def test_skip_and_times_choose_the_requests(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("info", Refuse(404), times=1, skip=1)):
        await sandbox.get_info()
        with pytest.raises(SandboxNotFoundException):
            await sandbox.get_info()
        await sandbox.get_info()


def test_an_operation_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown operation"):
        Fault("creat", Silence())


async def test_a_lost_answer_leaves_a_sandbox_behind(server: E2BServer) -> None:
    metadata = {"mark": "lost"}
    with server.misbehave(Fault("create", Lose())), pytest.raises(httpx.TransportError):
        await AsyncSandbox.create(timeout=60, metadata=metadata, retries=0, **server.connection)
    (orphan,) = server.sandboxes(metadata)
    assert await AsyncSandbox.kill(orphan.id, **server.connection)


@pytest.mark.parametrize("delay", [Slow(before=0.5), Slow(after=0.5)])
async def test_a_slow_create_goes_on_when_its_client_has_left(
    server: E2BServer, delay: Slow, until: Any
) -> None:
    metadata = {"mark": repr(delay)}
    asked = server.requests["create"]
    with server.misbehave(Fault("create", delay)):
        creating = asyncio.create_task(
            AsyncSandbox.create(timeout=60, metadata=metadata, retries=0, **server.connection)
        )
        await until(lambda: server.requests["create"] > asked)
        await until(lambda: bool(server.sandboxes(metadata)) is bool(delay.after))
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)
        await until(lambda: [each.state for each in server.sandboxes(metadata)] == ["running"])
    (orphan,) = server.sandboxes(metadata)
    await AsyncSandbox.kill(orphan.id, **server.connection)


async def test_a_stream_cut_after_its_start_is_a_lost_connection(
    server: E2BServer, sandbox: AsyncSandbox, machine: StandInMachine
) -> None:
    with server.misbehave(Fault("start", Cut(after_messages=1))):
        command = await sandbox.commands.run("sleep 60", background=True, timeout=0)
        with pytest.raises(Exception, match=r".") as caught:
            await asyncio.wait_for(command.wait(), 10)
    assert not isinstance(caught.value, TimeoutError)
    assert list(machine.processes) == [command.pid]


async def test_a_lost_start_leaves_a_process_that_can_be_found(
    server: E2BServer, sandbox: AsyncSandbox
) -> None:
    with server.misbehave(Fault("start", Lose())), pytest.raises(Exception, match=r"."):
        await sandbox.commands.run("sleep 60", envs={"MARK": "mine"}, timeout=0)
    (found,) = await sandbox.commands.list()
    assert found.envs == {"MARK": "mine"}


async def test_a_download_cut_short_is_an_error(server: E2BServer, sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("long", bytes(500_000))
    with server.misbehave(Fault("read", Cut(after_bytes=100_000))):
        with pytest.raises(httpx.TransportError):
            await sandbox.files.read("long", format="bytes")


async def test_a_cell_cut_short_is_an_error(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("execute", Cut(after_messages=2))):
        with pytest.raises(httpx.TransportError):
            await sandbox.run_code("say half")


async def test_a_command_without_an_end_is_a_bare_exception(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("start", OmitEnd())):
        with pytest.raises(Exception, match="end event") as caught:
            await sandbox.commands.run("echo hi")
    assert caught.type is Exception


async def test_a_cell_without_an_end_looks_complete(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("execute", OmitEnd())):
        assert (await sandbox.run_code("say hi")).logs.stdout == ["hi"]


async def test_silence_lasts_until_the_client_gives_up(server: E2BServer, sandbox: AsyncSandbox) -> None:
    with server.misbehave(Fault("stat", Silence())), pytest.raises(TimeoutException):
        await sandbox.files.get_info("x", request_timeout=0.3)


async def test_a_lifetime_that_ends_in_mid_command(server: E2BServer, boots: Boots, until: Any) -> None:
    sandbox = await AsyncSandbox.create(timeout=60, **server.connection)
    machine = boots.last
    with server.misbehave(Fault("start", Expire())):
        with pytest.raises((SandboxNotRunningException, SandboxUnreachableException)):
            await sandbox.commands.run("sleep 60", timeout=0)
    await until(lambda: machine.is_down)
    assert not await sandbox.is_running()


async def test_a_lifetime_that_ends_in_mid_cell(
    server: E2BServer, sandbox: AsyncSandbox, machine: StandInMachine, until: Any
) -> None:
    running = asyncio.create_task(sandbox.run_code("wait", timeout=0))
    await until(lambda: machine.kernels.environments)
    server.expire(sandbox.sandbox_id)
    with pytest.raises(TimeoutException):
        await asyncio.wait_for(running, 10)
    await until(lambda: machine.is_down)
