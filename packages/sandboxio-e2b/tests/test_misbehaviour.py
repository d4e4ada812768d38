"""Each way in which the service misbehaves, and the error of ours that it becomes. Nothing hangs or stays."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from e2b_server.faults import Cut, Effect, Expire, Fault, Lose, OmitEnd, Refuse, Silence, Slow
from e2b_server.server import E2BServer

import sandboxio
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import (
    AuthError,
    ConnectError,
    CreateTimeout,
    CreationError,
    ExecutionTimeout,
    FileSystemError,
    OrphanedSandboxWarning,
    RateLimitError,
    SandboxError,
    SandboxGone,
)
from sandboxio_e2b import E2BBackend, E2BConfig

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

HTML = "<html>gateway</html>"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str, e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    """One that survives all of it."""
    async with await create() as sandbox:
        yield sandbox


async def create(*, create_timeout: float = 60.0, lifetime: float = 120.0) -> Sandbox:
    backend = E2BBackend(E2BConfig(create_timeout=create_timeout))
    return await backend.create(
        template=None, resources=None, network=None, env=None, secrets=None, timeout=lifetime, metadata=None
    )


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        (Refuse(400), CreationError),
        (Refuse(401), AuthError),
        (Refuse(403), AuthError),
        (Refuse(404), CreationError),
        (Refuse(429, retry_after=30), RateLimitError),
        (Refuse(500), CreationError),
        (Refuse(502), CreationError),
        (Refuse(503), CreationError),
        (Refuse(504), CreationError),
        (Refuse(500, body=HTML), SandboxError),
        (Refuse(200, body=HTML), SandboxError),
        (Lose(), ConnectError),
        (Slow(after=5), CreateTimeout),
        (Slow(before=4), CreateTimeout),
    ],
    ids=str,
)
async def test_a_creation_that_fails_is_typed_and_leaves_nothing(
    e2b_server: E2BServer, effect: Effect, error: type[SandboxError]
) -> None:
    before = {each.id for each in e2b_server.sandboxes()}
    with e2b_server.misbehave(Fault("create", effect)), anyio.fail_after(25), pytest.raises(error) as caught:
        await create(create_timeout=2)
    assert len(str(caught.value).splitlines()) == 3
    assert await settled(e2b_server) == before


@pytest.mark.parametrize("effect", [Silence(), Slow(before=8)], ids=str)
async def test_a_creation_that_is_never_answered_warns_of_what_may_still_appear(
    e2b_server: E2BServer, effect: Effect
) -> None:
    before = {each.id for each in e2b_server.sandboxes()}
    with e2b_server.misbehave(Fault("create", effect)), anyio.fail_after(25):
        with pytest.warns(OrphanedSandboxWarning, match="sandboxio.creation="), pytest.raises(CreateTimeout):
            await create(create_timeout=2)
    backend = E2BBackend()
    if isinstance(effect, Slow):
        with anyio.fail_after(20):
            while not (late := await settled(e2b_server) - before):
                await anyio.sleep(0.1)
        for sandbox_id in late:
            await backend.kill_managed(sandbox_id)
    assert await settled(e2b_server) == before


async def settled(server: E2BServer) -> set[str]:
    """The sandboxes that are there once every boot and shutdown has come to its end."""
    return {each.id for each in await anyio.to_thread.run_sync(server.leftovers)}


async def test_a_refusal_is_not_retried_behind_the_callers_back(e2b_server: E2BServer) -> None:
    before = e2b_server.requests["create"]
    with e2b_server.misbehave(Fault("create", Refuse(429, retry_after=1))), pytest.raises(RateLimitError):
        await create()
    assert e2b_server.requests["create"] == before + 1


async def test_without_a_key_nothing_is_sent(e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY")
    before = e2b_server.requests["any"]
    with pytest.raises(AuthError, match="E2B_API_KEY"):
        await create()
    assert e2b_server.requests["any"] == before


async def test_a_key_that_is_refused_is_an_auth_error(
    e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_API_KEY", f"e2b_{'0' * 40}")
    with pytest.raises(AuthError, match="E2B_API_KEY"):
        await create()


RPC_ERRORS = [
    (Refuse(401), AuthError),
    (Refuse(429, retry_after=1), RateLimitError),
    (Refuse(500), ConnectError),
    (Refuse(502), ConnectError),
    (Refuse(503), ConnectError),
    (Refuse(504), ConnectError),
    (Refuse(502, body=HTML), ConnectError),
]


@pytest.mark.parametrize(
    ("effect", "error"),
    [*RPC_ERRORS, (Cut(after_messages=1), ConnectError), (OmitEnd(), ConnectError), (Lose(), ConnectError)],
    ids=str,
)
async def test_a_command_that_the_service_spoils_is_typed_and_ended(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, error: type[SandboxError]
) -> None:
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("start", effect, times=1)), pytest.raises(error) as caught:
            await sandbox.run("sleep 300 & sleep 300" if not isinstance(effect, OmitEnd) else "kill -9 $PPID")
        assert not isinstance(caught.value, SandboxGone)
        assert e2b_server.processes(sandbox.id) == {}
        assert (await sandbox.run("echo fine")).stdout == "fine\n"


async def test_a_command_whose_start_is_never_answered_keeps_its_deadline(
    e2b_server: E2BServer, sandbox: Sandbox
) -> None:
    with anyio.fail_after(20), e2b_server.misbehave(Fault("start", Silence(), times=1)):
        with pytest.raises(ExecutionTimeout):
            await sandbox.run("sleep 300", timeout=0.5)
    assert (await sandbox.run("echo fine")).stdout == "fine\n"


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        (Refuse(401), AuthError),
        (Refuse(429), SandboxError),
        (Refuse(500), ConnectError),
        (Refuse(502), ConnectError),
        (Refuse(503), ConnectError),
        (Refuse(504), ConnectError),
        (Refuse(200, body=HTML), ConnectError),
        (Cut(after_messages=2), ConnectError),
        (OmitEnd(), ConnectError),
        (Lose(), ConnectError),
    ],
    ids=str,
)
async def test_a_cell_that_the_service_spoils_is_typed_and_ended(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, error: type[SandboxError]
) -> None:
    code = "print('begun', flush=True)\n"
    code += "import time; time.sleep(300)" if not isinstance(effect, OmitEnd) else ""
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("execute", effect, times=1, skip=1)), pytest.raises(error):
            await sandbox.run_code(code)
        assert e2b_server.contexts(sandbox.id) == []
        assert (await sandbox.run_code("print('fine')")).stdout == "fine\n"


@pytest.mark.parametrize("effect", [Refuse(500), Refuse(503), Lose(), Refuse(200, body=HTML)], ids=str)
async def test_a_context_that_cannot_be_opened_is_a_typed_error(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect
) -> None:
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("open_context", effect, times=1)), pytest.raises(SandboxError):
            await sandbox.run_code("print(1)")
        assert (await sandbox.run_code("print('fine')")).stdout == "fine\n"


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        (Refuse(401), AuthError),
        (Refuse(429), RateLimitError),
        (Refuse(500), ConnectError),
        (Refuse(507), FileSystemError),
        (Cut(after_bytes=1000), ConnectError),
    ],
    ids=str,
)
async def test_a_transfer_that_the_service_spoils_is_typed(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, error: type[SandboxError]
) -> None:
    await sandbox.files.write("content", bytes(100_000))
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("read", effect, times=1)), pytest.raises(error):
            await sandbox.files.read("content")
        if not isinstance(effect, Cut):
            with e2b_server.misbehave(Fault("write", effect, times=1)), pytest.raises(error):
                await sandbox.files.write("content", b"new")
            assert await sandbox.files.read("content") == bytes(100_000)
            assert [entry.name for entry in await sandbox.files.ls()] == ["content"]


async def test_a_lifetime_that_ends_in_a_command_is_sandbox_gone(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:
        with e2b_server.misbehave(Fault("start", Expire(after_messages=1))), anyio.fail_after(30):
            with pytest.raises(SandboxGone):
                await sandbox.run("echo begun; sleep 300")


async def test_a_lifetime_that_ends_in_a_cell_is_sandbox_gone(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:
        with e2b_server.misbehave(Fault("execute", Expire(after_messages=1), skip=1)), anyio.fail_after(30):
            with pytest.raises(SandboxGone):
                await sandbox.run_code("print('begun', flush=True)\nimport time; time.sleep(300)")


async def test_a_kill_that_is_refused_is_a_connect_error_that_names_reap(e2b_server: E2BServer) -> None:
    sandbox = await create()
    with e2b_server.misbehave(Fault("kill", Refuse(500))), pytest.raises(ConnectError, match="reap"):
        await sandbox.kill()
    await sandbox.kill()
    assert sandbox.id not in await settled(e2b_server)


async def test_a_listing_comes_in_pages_and_is_whole(e2b_server: E2BServer) -> None:
    backend = E2BBackend()
    async with await create(), await create():
        with e2b_server.misbehave(Fault("list", Refuse(500), times=1)), pytest.raises(ConnectError):
            await backend.list_managed()
        assert len(await backend.list_managed()) >= 2


async def test_a_template_without_a_code_interpreter_declares_less(e2b_server: E2BServer) -> None:
    with e2b_server.misbehave(
        Fault("list_contexts", Refuse(502, "The sandbox is running but port is not open"))
    ):
        sandbox = await create()
    async with sandbox:
        assert sandboxio.Capability.STATEFUL_CODE not in sandbox.capabilities
        assert (await sandbox.run_code("print(6 * 7)")).stdout == "42\n"
