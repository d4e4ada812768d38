"""Contexts of a handle that is left, or whose removal is cut off: none stays, none is used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace

import pytest

from sandboxio.adapter.driver import CodeSpec
from sandboxio.errors import ConnectError
from sandboxio_e2b import cell, contexts
from sandboxio_e2b.contexts import CodeContext, Contexts

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Native:
    """The part of the SDK's sandbox that opens and removes contexts."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.answer = asyncio.Event()
        self.answer.set()

    async def create_code_context(self, **_: object) -> SimpleNamespace:
        name = f"context {len(self.open)}"
        self.open.add(name)
        await self.answer.wait()
        return SimpleNamespace(id=name)

    async def remove_code_context(self, context_id: str) -> None:
        await self.answer.wait()
        self.open.remove(context_id)


def kept_of(native: Native) -> Contexts:
    return Contexts(native, "/home/user")  # type: ignore[arg-type]


async def test_one_that_is_opened_while_the_handle_is_left_is_removed() -> None:
    native = Native()
    native.answer.clear()
    kept = kept_of(native)
    opening = asyncio.create_task(kept.open(kept.named("a")))
    await asyncio.sleep(0)
    await kept.remove_all()
    assert native.open
    native.answer.set()
    with pytest.raises(ConnectError, match="was left"):
        await opening
    assert native.open == set()


async def test_one_whose_removal_is_cut_off_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "_REMOVE_SECONDS", 0.2)
    native = Native()
    kept, context = kept_of(native), CodeContext()
    await kept.open(context)
    native.answer.clear()
    removing = asyncio.create_task(kept.remove(context))
    await asyncio.sleep(0.05)
    for _ in range(2):
        removing.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await removing
    assert context.native_id == ""


@pytest.mark.parametrize(
    ("name", "order"),
    [
        (None, ["the context is given back", "the answer is left"]),
        ("shared", ["the answer is left", "the context is given back"]),
    ],
)
async def test_one_that_others_use_is_given_back_when_no_answer_can_be_broken_off_any_more(
    name: str | None, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    async def execute(*_: object, turn: asyncio.Event) -> AsyncIterator[Mapping[str, str]]:
        await turn.wait()
        try:
            yield {"type": "end_of_execution"}
            await asyncio.Event().wait()
        finally:
            happened.append("the answer is left")

    async def give_back() -> None:
        happened.append("the context is given back")

    monkeypatch.setattr(cell, "execute", execute)
    monkeypatch.setattr(cell, "_END_SECONDS", 0.2)
    spec = CodeSpec("", "python", name, {}, timeout=60)
    running = cell.Cell(None, spec, CodeContext(), kill=give_back, close=give_back)  # type: ignore[arg-type]
    running.announce()
    running.begin()
    assert (await running.wait()).code == 0
    await running.aclose()
    assert happened == order
