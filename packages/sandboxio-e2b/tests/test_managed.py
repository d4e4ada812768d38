"""What is found again in an account, and how a provider that answers wrongly is withstood."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import pytest
from adapter_suite import create, settled
from e2b_code_interpreter import AsyncSandbox
from e2b_server.faults import Fault, Refuse, Silence
from e2b_server.server import E2BServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandboxio.errors import ConnectError, CreateTimeout, CreationError, SandboxError, SandboxGone
from sandboxio_e2b import E2BBackend, inventory, managed
from sandboxio_e2b.account import api_options

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

NOT_E2B = [
    '{"items": [',
    "<html>gateway</html>",
    "null",
    "7",
    '"text"',
    "[]",
    "[1]",
    '[{"sandboxID": 1}]',
    '[{"sandboxID": "i1", "metadata": []}]',
    "{}",
    '{"items": []}',
    '""',
    "",
    "[" * 100_000,
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def foreign(e2b_server: E2BServer) -> AsyncIterator[str]:
    """The id of a sandbox that somebody else made in the same account."""
    native = await AsyncSandbox.create(timeout=60, metadata={"owner": "somebody else"})
    yield native.sandbox_id
    await native.kill()


def answering(body: str) -> Refuse:
    """A success by its status, with a body of the service's kind."""
    return Refuse(200, body=body, kind="application/json")


@dataclass(frozen=True)
class Forgetful:
    """The list is given without its filter: every sandbox of the account.

    Attributes:
        endless: Each page says that another one follows.
    """

    endless: bool = False

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application forget what it was asked for."""

        async def telling(message: Message) -> None:
            if self.endless and message["type"] == "http.response.start":
                kept = [header for header in message["headers"] if header[0].lower() != b"x-next-token"]
                message = {**message, "headers": [*kept, (b"x-next-token", b"more")]}
            await send(message)

        await app({**scope, "query_string": b""}, receive, telling)


async def test_a_list_that_ignores_its_filter_shows_and_ends_nothing_of_others(
    e2b_server: E2BServer, foreign: str
) -> None:
    backend = E2BBackend()
    options = api_options(backend.config, request_timeout=20)
    with e2b_server.misbehave(Fault("list", Forgetful())):
        assert foreign in {each.sandbox_id for each in await inventory.list_labelled({}, options)}
        assert foreign not in {each.id for each in await backend.list_managed()}
        await managed.kill_created("no-such-creation", options, answered=True)
        with e2b_server.misbehave(Fault("create", Refuse(500))), pytest.raises(CreationError):
            await create()
        with e2b_server.misbehave(Fault("create", Silence())), pytest.warns(), pytest.raises(CreateTimeout):
            await create(create_timeout=1)
    assert foreign in await settled(e2b_server)


async def test_a_sandbox_of_somebody_else_is_neither_connected_nor_ended(
    e2b_server: E2BServer, foreign: str
) -> None:
    backend = E2BBackend()
    for call in (backend.connect, backend.kill_managed):
        with pytest.raises(ConnectError, match="not made by sandboxio"):
            await call(foreign)
    assert foreign in await settled(e2b_server)


@pytest.mark.parametrize("sandbox_id", ["", "../x", "a/b", "a?b", "é", "a b", "a\nb", "i0" * 500 + "/"])
async def test_what_is_no_id_is_sent_nowhere(e2b_server: E2BServer, sandbox_id: str) -> None:
    backend, before = E2BBackend(), e2b_server.requests["any"]
    with pytest.raises(SandboxGone):
        await backend.connect(sandbox_id)
    await backend.kill_managed(sandbox_id)
    assert e2b_server.requests["any"] == before


@pytest.mark.parametrize("body", [text for text in NOT_E2B if text != "[]"], ids=lambda text: text[:20])
async def test_a_list_that_is_none_is_a_connect_error_and_no_crash(e2b_server: E2BServer, body: str) -> None:
    backend = E2BBackend()
    with e2b_server.misbehave(Fault("list", answering(body))), anyio.fail_after(20):
        with pytest.raises(ConnectError) as caught:
            await backend.list_managed()
        assert len(str(caught.value).splitlines()) == 3
        checks = {check.name: check for check in await backend.diagnose()}
    assert checks["service"].status == "failed"
    assert checks["service"].hint


@pytest.mark.parametrize("body", NOT_E2B, ids=lambda text: text[:20])
async def test_a_description_that_is_none_is_a_connect_error(e2b_server: E2BServer, body: str) -> None:
    backend = E2BBackend()
    with e2b_server.misbehave(Fault("info", answering(body))), anyio.fail_after(20):
        for call in (backend.connect, backend.kill_managed):
            with pytest.raises(ConnectError):
                await call("i0123456789")


async def test_what_carries_the_labels_is_found_on_every_page(
    e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = api_options(E2BBackend().config, request_timeout=20)
    query = {"group": "a b&c=d/é"}
    made = [await AsyncSandbox.create(timeout=60, metadata={**query, "n": str(n)}) for n in range(3)]
    monkeypatch.setattr(inventory, "_PAGE_SIZE", 2)
    asked = e2b_server.requests["list"]
    found = await inventory.list_labelled(query, options)
    assert sorted(each.sandbox_id for each in found) == sorted(each.sandbox_id for each in made)
    assert e2b_server.requests["list"] == asked + 2
    for each in made:
        await each.kill()
    assert await inventory.list_labelled(query, options) == []


async def test_a_list_without_end_ends(e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_MOST_PAGES", 20)
    endless = Fault("list", Forgetful(endless=True))
    with e2b_server.misbehave(endless), anyio.fail_after(20), pytest.raises(ConnectError, match="no end"):
        await E2BBackend().list_managed()


async def test_a_refused_list_is_what_doctor_shows(e2b_server: E2BServer) -> None:
    with e2b_server.misbehave(Fault("list", Refuse(401))):
        checks = {check.name: check for check in await E2BBackend().diagnose()}
    assert checks["service"].status == "failed"
    assert "E2B_API_KEY" in checks["service"].hint


async def test_doctor_counts_what_is_there(e2b_server: E2BServer) -> None:
    async with await create():
        checks = {check.name: check for check in await E2BBackend().diagnose()}
        managed_ones = e2b_server.sandboxes({"sandboxio.managed": "true"})
    assert {check.status for check in checks.values()} == {"ok"}
    assert f"{len(managed_ones)} sandboxes" in checks["service"].detail


async def test_an_unknown_error_of_the_sdk_is_one_of_ours(
    e2b_server: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("nextToken")

    monkeypatch.setattr(inventory, "get_api_client", broken)
    with pytest.raises(SandboxError):
        await E2BBackend().list_managed()
    assert any(check.status == "failed" for check in await E2BBackend().diagnose())
