"""Output between the task that brings it and the one that takes it."""

from __future__ import annotations

import asyncio

import pytest

from sandboxio.adapter.driver import OutputDropped
from sandboxio.models import OutputChunk
from sandboxio_e2b import feed as feed_module
from sandboxio_e2b.feed import Feed, Item


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


def chunk(n: int, size: int = 0) -> OutputChunk:
    return OutputChunk("stdout", str(n).encode().ljust(size))


def number(item: Item | None) -> int:
    assert isinstance(item, OutputChunk)
    return int(item.data)


async def pump(feed: Feed, count: int, put: list[int]) -> None:
    for n in range(count):
        await feed.put(chunk(n))
        put.append(n)
    feed.end()


async def drain(feed: Feed) -> list[int]:
    taken: list[int] = []
    while (item := await feed.take()) is not None:
        taken.append(number(item))
    return taken


async def test_items_come_in_order_and_then_the_end() -> None:
    feed = Feed()
    pumping = asyncio.ensure_future(pump(feed, 1000, []))
    async with asyncio.timeout(5):
        assert await drain(feed) == list(range(1000))
        assert await feed.take() is None
        await pumping


async def test_who_brings_more_than_is_taken_waits() -> None:
    feed = Feed()
    put: list[int] = []
    pumping = asyncio.ensure_future(pump(feed, 100, put))
    await settle()
    ahead = len(put)
    assert 0 < ahead < 100
    for n in range(5):
        assert number(await feed.take()) == n
    await settle()
    assert len(put) == ahead + 5
    pumping.cancel()


async def test_a_take_that_is_cancelled_loses_nothing() -> None:
    feed = Feed()
    for round_ in range(50):
        taking = asyncio.ensure_future(feed.take())
        await asyncio.sleep(0)
        if round_ % 2:
            taking.cancel()
            await feed.put(chunk(round_))
        else:
            await feed.put(chunk(round_))
            taking.cancel()
        await asyncio.wait([taking])
        assert taking.cancelled()
        async with asyncio.timeout(5):
            assert number(await feed.take()) == round_


async def test_takes_that_are_cancelled_do_not_use_up_the_room() -> None:
    feed = Feed()
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
    feed = Feed()
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
    feed = Feed()
    taking = asyncio.ensure_future(feed.take())
    await settle()
    feed.end()
    async with asyncio.timeout(5):
        assert await taking is None


async def test_a_failure_comes_behind_the_output_and_stays() -> None:
    feed = Feed()
    await feed.put(chunk(1))
    feed.end(ConnectionResetError("cut off"))
    assert number(await feed.take()) == 1
    for _ in range(2):
        with pytest.raises(ConnectionResetError, match="cut off"):
            await feed.take()


async def everything(feed: Feed) -> list[Item]:
    taken: list[Item] = []
    async with asyncio.timeout(5):
        while (item := await feed.take()) is not None:
            taken.append(item)
    return taken


async def test_a_widened_feed_lets_all_in_keeps_a_bounded_part_and_says_what_it_drops() -> None:
    feed = Feed()
    put: list[int] = []
    pumping = asyncio.ensure_future(pump(feed, 100_000, put))
    await settle()
    assert len(put) < 100_000
    feed.widen()
    async with asyncio.timeout(5):
        await pumping  # although nobody takes anything
    *kept, last = await everything(feed)
    assert len(put) == 100_000
    assert 16 < len(kept) < 10_000
    assert [number(item) for item in kept] == list(range(len(kept)))
    assert isinstance(last, OutputDropped)


async def test_a_widened_feed_counts_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "_BYTES_KEPT", 1000)
    feed = Feed()
    feed.widen()
    for n in range(100):
        await feed.put(chunk(n, size=100))
    feed.end()
    *kept, last = await everything(feed)
    assert [number(item) for item in kept] == list(range(10))
    assert isinstance(last, OutputDropped)


async def test_a_widened_feed_that_was_emptied_takes_more_and_says_each_gap_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_module, "_ITEMS_KEPT", 2)
    feed = Feed()
    feed.widen()
    for n in range(5):
        await feed.put(chunk(n))
    taken = [await feed.take() for _ in range(3)]
    for n in range(5, 10):
        await feed.put(chunk(n))
    feed.end()
    taken += await everything(feed)
    assert [None if isinstance(item, OutputDropped) else number(item) for item in taken] == [
        0,
        1,
        None,
        5,
        6,
        None,
    ]


async def test_widening_while_nobody_waits_is_no_loss() -> None:
    feed = Feed()
    feed.widen()
    async with asyncio.timeout(5):
        await pump(feed, 100, [])
        assert await drain(feed) == list(range(100))
