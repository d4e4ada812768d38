"""What must reach its end does, whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from sandboxio.release import bounded, grace_seconds, uninterrupted


async def test_a_scopes_cancellation_waits_for_the_end_and_then_surfaces() -> None:
    ended = False

    async def action() -> None:
        nonlocal ended
        await anyio.sleep(0.05)
        ended = True

    with anyio.move_on_after(0.01) as scope:
        await uninterrupted(action)
        await anyio.lowlevel.checkpoint()
        pytest.fail("the cancellation was lost")
    assert ended
    assert scope.cancelled_caught


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_several_native_cancellations_do_not_interrupt_it_either() -> None:
    ended = False

    async def action() -> None:
        nonlocal ended
        await asyncio.sleep(0.1)
        ended = True

    task = asyncio.ensure_future(bounded(action))
    for _ in range(4):
        await asyncio.sleep(0.01)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_its_error_comes_through_as_it_is() -> None:
    error = ZeroDivisionError()

    async def action() -> None:
        raise error

    with pytest.raises(ZeroDivisionError) as caught:
        await uninterrupted(action)
    assert caught.value is error


async def test_one_that_takes_too_long_is_given_up() -> None:
    with anyio.fail_after(5):
        assert not await bounded(anyio.sleep_forever, grace=0.01)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2.5", 2.5), ("", 5.0), ("abc", 5.0), ("-1", 5.0), ("nan", 5.0)]
)
def test_a_teardown_never_fails_for_its_own_setting(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float
) -> None:
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", text)
    assert grace_seconds() == seconds
