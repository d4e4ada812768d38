"""What is found again in an account, and how a provider that answers wrongly is withstood."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import anyio
import pytest
from adapter_suite import create, settled
from e2b_code_interpreter import AsyncSandbox
from e2b_server.faults import Fault, Refuse, Silence
from e2b_server.server import E2BServer

from sandboxio.errors import ConnectError, CreateTimeout, CreationError, SandboxError, SandboxGone
from sandboxio_e2b import E2BBackend, managed
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


class Pages:
    """A paginator of the SDK's that forgets what it was asked for."""

    answer: ClassVar[list[Any]] = []
    asked: ClassVar[int] = 0
    endless: ClassVar[bool] = False

    def __init__(self) -> None:
        self.has_next = True

    async def next_items(self) -> list[Any]:
        """The same page, whatever was asked for."""
        await anyio.sleep(0)
        Pages.asked += 1
        self.has_next = self.endless
        return self.answer


@pytest.fixture
async def forgetful(foreign: str, monkeypatch: pytest.MonkeyPatch) -> type[Pages]:
    """A list without its filter: every sandbox of the account, the foreign one among them."""
    found: list[Any] = []
    pages = AsyncSandbox.list()
    while pages.has_next:
        found += await pages.next_items()
    assert foreign in {info.sandbox_id for info in found}
    monkeypatch.setattr(Pages, "answer", found)
    monkeypatch.setattr(Pages, "asked", 0)
    monkeypatch.setattr(AsyncSandbox, "list", lambda *_, **__: Pages())
    return Pages


async def test_a_list_that_ignores_its_filter_shows_and_ends_nothing_of_others(
    e2b_server: E2BServer, foreign: str, forgetful: type[Pages]
) -> None:
    backend = E2BBackend()
    assert foreign not in {each.id for each in await backend.list_managed()}
    await managed.kill_created(
        "no-such-creation", api_options(backend.config, request_timeout=20), answered=True
    )
    with e2b_server.misbehave(Fault("create", Refuse(500))), pytest.raises(CreationError):
        await create()
    with e2b_server.misbehave(Fault("create", Silence())), pytest.warns(), pytest.raises(CreateTimeout):
        await create(create_timeout=1)
    assert forgetful.asked
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


@pytest.mark.parametrize(
    "body", [text for text in NOT_E2B if text not in ("[]", "{}")], ids=lambda text: text[:20]
)
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


async def test_a_list_without_end_ends(
    e2b_server: E2BServer, forgetful: type[Pages], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetful, "endless", True)
    with anyio.fail_after(20), pytest.raises(ConnectError, match="no end"):
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

    monkeypatch.setattr(AsyncSandbox, "list", broken)
    with pytest.raises(SandboxError):
        await E2BBackend().list_managed()
    assert any(check.status == "failed" for check in await E2BBackend().diagnose())
