"""What `create` and `connect` return is a coroutine to everyone who takes one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any, cast

import anyio
import pytest

import sandboxio

from .recording import RecordingBackend


def test_it_is_a_coroutine() -> None:
    pending = sandboxio.create("recording://")
    assert isinstance(pending, Coroutine)
    assert inspect.isawaitable(pending)
    assert asyncio.iscoroutine(pending)
    assert repr(pending) == "<PendingSandbox of create()>"
    pending.close()


async def test_it_can_be_used_once() -> None:
    pending = sandboxio.create("recording://")
    await pending
    with pytest.raises(RuntimeError, match="already awaited"):
        await pending
    with pytest.raises(RuntimeError, match="already awaited"):
        async with pending:
            pass


def test_an_exception_can_be_thrown_in() -> None:
    pending = sandboxio.create("recording://")
    with pytest.raises(KeyError):
        pending.throw(KeyError("stop"))


@pytest.mark.parametrize("form", ["create", "connect"])
def test_one_that_is_never_used_warns_as_a_coroutine_does(form: str) -> None:
    arguments = ("recording://", "abc")[: 1 if form == "create" else 2]
    with pytest.warns(RuntimeWarning, match=f"coroutine '{form}' was never awaited"):
        getattr(sandboxio, form)(*arguments)


async def test_task_groups_of_anyio_take_it() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxio.create, "recording://")
        group.start_soon(sandboxio.create, "recording://")
    assert len(RecordingBackend.made) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_takes_it(anyio_backend: str) -> None:
    task = asyncio.create_task(sandboxio.create("recording://"), name="creating")
    gathered = await asyncio.gather(sandboxio.create("recording://"), sandboxio.create("recording://"))
    async with asyncio.TaskGroup() as group:
        grouped = group.create_task(sandboxio.create("recording://"))
    waited = await asyncio.wait_for(sandboxio.create("recording://"), 5)
    sandboxes = [await task, *gathered, grouped.result(), waited]
    assert [sandbox.id for sandbox in sandboxes] == ["sandbox-1"] * 5


def test_asyncio_run_takes_it() -> None:
    assert asyncio.run(cast("Any", sandboxio.create("recording://"))).id == "sandbox-1"


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trio_takes_it(anyio_backend: str) -> None:
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sandboxio.create, "recording://")
    assert len(RecordingBackend.made) == 1
