"""Output between the task that brings it and the one that takes it."""

from __future__ import annotations

import asyncio

import pytest

from sandboxio_e2b.feed import Feed


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


async def pump(feed: Feed[int], count: int, put: list[int]) -> None:
    for n in range(count):
        await feed.put(n)
        put.append(n)
    feed.end()


async def drain(feed: Feed[int]) -> list[int]:
    taken: list[int] = []
    while (item := await feed.take()) is not None:
        taken.append(item)
    return taken


async def test_items_come_in_order_and_then_the_end() -> None:
    feed: Feed[int] = Feed()
    pumping = asyncio.ensure_future(pump(feed, 1000, []))
    async with asyncio.timeout(5):
        assert await drain(feed) == list(range(1000))
        assert await feed.take() is None
        await pumping


async def test_who_brings_more_than_is_taken_waits() -> None:
    feed: Feed[int] = Feed()
    put: list[int] = []
    pumping = asyncio.ensure_future(pump(feed, 100, put))
    await settle()
    ahead = len(put)
    assert 0 < ahead < 100
    for n in range(5):
        assert await feed.take() == n
    await settle()
    assert len(put) == ahead + 5
    pumping.cancel()


async def test_a_take_that_is_cancelled_loses_nothing() -> None:
    feed: Feed[int] = Feed()
    for round_ in range(50):
        taking = asyncio.ensure_future(feed.take())
        await asyncio.sleep(0)
        if round_ % 2:
            taking.cancel()
            await feed.put(round_)
        else:
            await feed.put(round_)
            taking.cancel()
        await asyncio.wait([taking])
        assert taking.cancelled()
        async with asyncio.timeout(5):
            assert await feed.take() == round_


async def test_takes_that_are_cancelled_do_not_use_up_the_room() -> None:
    feed: Feed[int] = Feed()
    for _ in range(100):
        taking = asyncio.ensure_future(feed.take())
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait([taking])
    put: list[int] = []
    pumping = asyncio.ensure_future(pump(feed, 200, put))
    await settle()
    assert 0 < len(put) < 100  # the room has not grown either
    async with asyncio.timeout(5):
        assert await drain(feed) == list(range(200))
    await pumping


async def test_a_put_that_is_cancelled_leaves_the_others_their_room() -> None:
    feed: Feed[int] = Feed()
    pumping = asyncio.ensure_future(pump(feed, 100, []))
    await settle()
    pumping.cancel()
    await asyncio.wait([pumping])
    again = asyncio.ensure_future(pump(feed, 100, []))
    async with asyncio.timeout(5):
        taken = await drain(feed)
    await again
    assert taken[-100:] == list(range(100))


async def test_an_end_without_a_reason_wakes_who_waits() -> None:
    feed: Feed[int] = Feed()
    taking = asyncio.ensure_future(feed.take())
    await settle()
    feed.end()
    async with asyncio.timeout(5):
        assert await taking is None


async def test_a_failure_comes_behind_the_output_and_stays() -> None:
    feed: Feed[int] = Feed()
    await feed.put(1)
    feed.end(ConnectionResetError("cut off"))
    assert await feed.take() == 1
    for _ in range(2):
        with pytest.raises(ConnectionResetError, match="cut off"):
            await feed.take()


async def test_a_widened_feed_lets_all_in_and_keeps_a_bounded_part_of_it() -> None:
    feed: Feed[int] = Feed()
    put: list[int] = []
    pumping = asyncio.ensure_future(pump(feed, 100_000, put))
    await settle()
    assert len(put) < 100_000
    feed.widen()
    async with asyncio.timeout(5):
        await pumping  # although nobody takes anything
        kept = await drain(feed)
    assert len(put) == 100_000
    assert 16 < len(kept) < 10_000
    assert kept == list(range(len(kept)))


async def test_widening_while_nobody_waits_is_no_loss() -> None:
    feed: Feed[int] = Feed()
    feed.widen()
    async with asyncio.timeout(5):
        await pump(feed, 100, [])
        assert await drain(feed) == list(range(100))
