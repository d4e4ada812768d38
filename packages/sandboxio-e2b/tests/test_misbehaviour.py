"""Each way in which the service misbehaves, and the error that the guide says it becomes. Nothing stays."""

from __future__ import annotations

import re
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from adapter_suite import create, require_fine, settled
from e2b_server.faults import Cut, Effect, Expire, Fault, Lose, OmitEnd, Refuse, Silence, Slow
from e2b_server.server import E2BServer

import sandboxio
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import (
    AuthError,
    ConnectError,
    CreateTimeout,
    ExecutionTimeout,
    OrphanedSandboxWarning,
    RateLimitError,
    SandboxError,
    SandboxGone,
)
from sandboxio_e2b import E2BBackend

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "e2b.md"
HTML = "<html>gateway</html>"

# What fails, how in the guide's words, and what does it.
Case = tuple[str, str, Effect]

CREATE, EXECUTION, FILE, KILL = "`create`", "a command or a cell", "a file", "`kill`"
CUT, UNANSWERED, OVER = (
    "a stream that is cut or has no end",
    "a start that is never answered",
    "the lifetime is over meanwhile",
)

CREATIONS: list[Case] = [
    *((CREATE, str(status), Refuse(status)) for status in (400, 401, 403, 404, 500, 502, 503, 504)),
    (CREATE, "429", Refuse(429, retry_after=30)),
    (CREATE, "a body that is no JSON", Refuse(500, body=HTML)),
    (CREATE, "a body that is no JSON", Refuse(200, body=HTML)),
    (CREATE, "an answer that is lost", Lose()),
    (CREATE, "no answer in `create_timeout`", Slow(after=5)),
    (CREATE, "no answer in `create_timeout`", Slow(before=4)),
]
REFUSALS: list[Case] = [
    *((EXECUTION, str(status), Refuse(status)) for status in (401, 500, 502, 503, 504)),
    (EXECUTION, "429", Refuse(429, retry_after=1)),
    (EXECUTION, "502", Refuse(502, body=HTML)),
]
COMMANDS: list[Case] = [
    *REFUSALS,
    (EXECUTION, CUT, Cut(after_messages=1)),
    (EXECUTION, CUT, OmitEnd()),
    (EXECUTION, CUT, Lose()),
]
CELLS: list[Case] = [
    *REFUSALS,
    (EXECUTION, CUT, Cut(after_messages=2)),
    (EXECUTION, CUT, OmitEnd()),
    (EXECUTION, CUT, Lose()),
    (EXECUTION, CUT, Refuse(200, body=HTML)),
]
TRANSFERS: list[Case] = [
    *((FILE, str(status), Refuse(status)) for status in (401, 429, 500, 507)),
    (FILE, "a body that is cut", Cut(after_bytes=1000)),
]
OTHERS = {(EXECUTION, UNANSWERED), (EXECUTION, OVER), (KILL, "refused")}


def documented() -> dict[tuple[str, str], str]:
    """The guide's table: the code of the error by what fails and how."""
    _, _, section = GUIDE.read_text(encoding="utf-8").partition("### What a failing service becomes\n")
    codes: dict[tuple[str, str], str] = {}
    what = ""
    for row in re.findall(r"^\|(.*)\|$", section.partition("\n## ")[0], re.MULTILINE)[2:]:
        first, how, error = (cell.strip() for cell in row.split("|"))
        what = first or what
        ways = how.partition(";")[0].split(", ")
        named = re.findall(r"SBX_E\d+", re.sub(r"\]\([^)]*\)", "", error))
        named = named if len(named) == len(ways) else named[:1] * len(ways)
        codes.update({(what, way): code for way, code in zip(ways, named, strict=True)})
    return codes


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """A test for each case, which is given the effect and the code that the guide says."""
    codes = documented()
    return pytest.mark.parametrize(
        ("effect", "code"),
        [(effect, codes[what, how]) for what, how, effect in cases],
        ids=[f"{how}-{type(effect).__name__}" for _, how, effect in cases],
    )


def test_the_guide_names_what_is_tested_and_nothing_else() -> None:
    cases = [*CREATIONS, *COMMANDS, *CELLS, *TRANSFERS]
    assert set(documented()) == {(what, how) for what, how, _ in cases} | OTHERS
    assert set(documented().values()) <= {
        getattr(sandboxio, name).code
        for name in sandboxio.__all__
        if hasattr(getattr(sandboxio, name), "code")
    }


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str, e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    """One that survives all of it."""
    async with await create(lifetime=300) as sandbox:
        yield sandbox


@each(CREATIONS)
async def test_a_creation_that_fails_is_typed_and_leaves_nothing(
    e2b_server: E2BServer, effect: Effect, code: str
) -> None:
    before = {each.id for each in e2b_server.sandboxes()}
    with e2b_server.misbehave(Fault("create", effect)), anyio.fail_after(25):
        with pytest.raises(SandboxError) as caught:
            await create(create_timeout=2)
    assert caught.value.code == code
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


async def test_a_key_that_the_service_repeats_is_in_no_error(
    e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"e2b_{'5' * 40}"
    monkeypatch.setenv("E2B_API_KEY", key)
    echo = Refuse(401, message=f"Bearer:{key}_ is no key")
    with e2b_server.misbehave(Fault("create", echo)), pytest.raises(AuthError) as created:
        await create()
    with e2b_server.misbehave(Fault("list", echo)), pytest.raises(AuthError) as listed:
        await E2BBackend().list_managed()
    for caught in (created, listed):
        assert key not in "".join(traceback.format_exception(caught.value))
        assert "[redacted]" in caught.value.message


@each(COMMANDS)
async def test_a_command_that_the_service_spoils_is_typed_and_ended(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, code: str
) -> None:
    command = "kill -9 $PPID" if isinstance(effect, OmitEnd) else "setsid sleep 300 & sleep 300"
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("start", effect, times=1)), pytest.raises(SandboxError) as caught:
            await sandbox.run(command)
        assert caught.value.code == code
        await require_fine(e2b_server, sandbox)


async def test_a_command_whose_start_is_never_answered_keeps_its_deadline(
    e2b_server: E2BServer, sandbox: Sandbox
) -> None:
    with anyio.fail_after(20), e2b_server.misbehave(Fault("start", Silence(), times=1)):
        with pytest.raises(ExecutionTimeout) as caught:
            await sandbox.run("sleep 300", timeout=0.5)
    assert caught.value.code == documented()[EXECUTION, UNANSWERED]
    await require_fine(e2b_server, sandbox)


@each(CELLS)
async def test_a_cell_that_the_service_spoils_is_typed_and_ended(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, code: str
) -> None:
    cell = "print('begun', flush=True)\n"
    if not isinstance(effect, OmitEnd):
        cell += "import subprocess; subprocess.run(['setsid', 'sleep', '300'])"
    with anyio.fail_after(30):
        fault = Fault("execute", effect, times=1, skip=1)
        with e2b_server.misbehave(fault), pytest.raises(SandboxError) as caught:
            await sandbox.run_code(cell)
        assert caught.value.code == code
        assert e2b_server.contexts(sandbox.id) == []
        assert (await sandbox.run_code("print('fine')")).stdout == "fine\n"
        await require_fine(e2b_server, sandbox)


@pytest.mark.parametrize("operation", ["open_context", "execute"])
@each([case for case in CELLS if not isinstance(case[2], Cut | OmitEnd)])
async def test_a_cell_that_cannot_be_prepared_is_a_typed_error(
    e2b_server: E2BServer, sandbox: Sandbox, operation: str, effect: Effect, code: str
) -> None:
    with anyio.fail_after(30):
        fault = Fault(operation, effect, times=1)
        with e2b_server.misbehave(fault), pytest.raises(SandboxError) as caught:
            await sandbox.run_code("print(1)")
        assert caught.value.code == code
        assert (await sandbox.run_code("print('fine')")).stdout == "fine\n"
        await require_fine(e2b_server, sandbox)


@each(TRANSFERS)
async def test_a_transfer_that_the_service_spoils_is_typed(
    e2b_server: E2BServer, sandbox: Sandbox, effect: Effect, code: str
) -> None:
    await sandbox.files.write("content", bytes(100_000))
    with anyio.fail_after(30):
        with e2b_server.misbehave(Fault("read", effect, times=1)), pytest.raises(SandboxError) as caught:
            await sandbox.files.read("content")
        assert caught.value.code == code
        if not isinstance(effect, Cut):
            with e2b_server.misbehave(Fault("write", effect, times=1)), pytest.raises(SandboxError) as caught:
                await sandbox.files.write("content", b"new")
            assert caught.value.code == code
            assert await sandbox.files.read("content") == bytes(100_000)
            assert [entry.name for entry in await sandbox.files.ls()] == ["content"]
        await require_fine(e2b_server, sandbox)


async def test_a_lifetime_that_ends_in_a_command_is_sandbox_gone(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:
        with e2b_server.misbehave(Fault("start", Expire(after_messages=1))), anyio.fail_after(30):
            with pytest.raises(SandboxGone) as caught:
                await sandbox.run("echo begun; sleep 300")
    assert caught.value.code == documented()[EXECUTION, OVER]


async def test_a_lifetime_that_ends_in_a_cell_is_sandbox_gone(e2b_server: E2BServer) -> None:
    async with await create() as sandbox:
        with e2b_server.misbehave(Fault("execute", Expire(after_messages=1), skip=1)), anyio.fail_after(30):
            with pytest.raises(SandboxGone) as caught:
                await sandbox.run_code("print('begun', flush=True)\nimport time; time.sleep(300)")
    assert caught.value.code == documented()[EXECUTION, OVER]


async def test_a_kill_that_is_refused_is_a_connect_error_that_names_reap(e2b_server: E2BServer) -> None:
    sandbox = await create()
    with e2b_server.misbehave(Fault("kill", Refuse(500))):
        with pytest.raises(ConnectError, match="sandboxio reap --kill") as caught:
            await sandbox.kill()
    assert caught.value.code == documented()[KILL, "refused"]
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
