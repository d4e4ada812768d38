"""`create` and `connect` as contexts."""

from __future__ import annotations

import anyio
import pytest

import sandboxio
from sandboxio import ConnectError

from .recording import RecordingBackend, ready_backend


async def test_both_forms_of_a_context_mean_the_same() -> None:
    async with sandboxio.create("recording://") as first:
        pass
    async with await sandboxio.create("recording://") as second:
        pass
    assert type(first) is type(second)
    assert [backend.log for backend in RecordingBackend.made] == [["create", "enter", "exit", "kill"]] * 2


async def test_a_context_that_was_not_entered_cannot_be_left() -> None:
    pending = sandboxio.create("recording://")
    with pytest.raises(RuntimeError, match="not entered"):
        await pending.__aexit__(None, None, None)
    pending.close()


async def test_a_created_sandbox_whose_context_cannot_be_entered_is_ended() -> None:
    recording, backend = ready_backend()

    async def refuse() -> None:
        raise ConnectError("no")

    recording.enter = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match="no"):
        async with sandboxio.create(backend):
            pass
    assert recording.log == ["create", "enter", "kill"]


async def test_a_connected_sandbox_whose_context_cannot_be_entered_is_left_alone() -> None:
    recording, backend = ready_backend()

    async def refuse() -> None:
        raise ConnectError("no")

    recording.enter = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match="no"):
        async with sandboxio.connect(backend, "abc"):
            pass
    assert recording.log == ["connect abc", "enter"]


async def test_a_sandbox_is_ended_when_entering_is_cancelled() -> None:
    recording, backend = ready_backend()
    recording.enter = anyio.sleep_forever  # type: ignore[method-assign]
    with anyio.move_on_after(0.05) as scope:
        async with sandboxio.create(backend):
            pass
    assert scope.cancelled_caught
    assert recording.log == ["create", "enter", "kill"]
