"""Connections over HTTP that send nothing, too little, or are too many."""

from __future__ import annotations

import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
import uvicorn
from anyio.abc import SocketStream
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from sandboxio.mcp import connections
from sandboxio.mcp.connections import BoundedConnection, connections_for

BOUND = 10.0
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345"


class Two(BoundedConnection):
    """One of two."""

    most_open = 2


class Site:
    """A server whose answers wait until they are let go."""

    def __init__(self) -> None:
        self.answer = anyio.Event()
        self.asked = anyio.Event()
        self.port = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        while (await receive()).get("more_body", False):
            pass
        await self.answer.wait()
        await PlainTextResponse("here")(scope, receive, send)

    async def connection(self) -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port)


@asynccontextmanager
async def site(kind: type[BoundedConnection] = BoundedConnection) -> AsyncGenerator[Site, None]:
    here = Site()
    config = uvicorn.Config(here, http=kind, port=0, lifespan="off", log_config=None, timeout_keep_alive=60)
    server = uvicorn.Server(config)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve)
            while not server.started:
                await anyio.sleep(0.01)
            here.port = server.servers[0].sockets[0].getsockname()[1]
            try:
                yield here
            finally:
                here.answer.set()
                server.should_exit = True


async def is_closed(stream: SocketStream) -> bool:
    try:
        await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


@pytest.mark.parametrize("sent", [b"", GET[:10], HALF], ids=["nothing", "half a head", "half a body"])
async def test_a_request_that_does_not_arrive_is_given_up(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_SECONDS", 0.2)
    async with site() as here, await here.connection() as stream:
        await stream.send(sent)
        assert await is_closed(stream)


async def test_so_is_one_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_SECONDS", 0.2)
    async with site() as here, await here.connection() as stream:
        here.answer.set()
        await stream.send(GET)
        assert b"200 OK" in await stream.receive()
        await stream.send(GET[:10])
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            while True:
                await stream.receive()


async def test_an_answer_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_SECONDS", 0.05)
    async with site() as here, await here.connection() as slow, await here.connection() as silent:
        await slow.send(GET)
        await here.asked.wait()
        assert await is_closed(silent)
        here.answer.set()
        assert b"200 OK" in await slow.receive()


async def test_one_too_many_takes_the_place_of_the_one_that_has_sent_nothing_for_longest() -> None:
    async with site(Two) as here, await here.connection() as busy:
        await busy.send(GET)
        await here.asked.wait()
        async with await here.connection() as silent, await here.connection() as late:
            assert await is_closed(silent)
            here.answer.set()
            await late.send(GET)
            assert b"200 OK" in await late.receive()
            assert b"200 OK" in await busy.receive()


async def test_where_all_are_busy_one_more_is_turned_away() -> None:
    async with site(Two) as here, await here.connection() as one, await here.connection() as two:
        for busy in (one, two):
            here.asked = anyio.Event()
            await busy.send(GET)
            await here.asked.wait()
        async with await here.connection() as late:
            assert await is_closed(late)
        here.answer.set()
        assert b"200 OK" in await one.receive()
        assert b"200 OK" in await two.receive()


def limit_descriptors(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    def getrlimit(kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return most, most

    monkeypatch.setattr(resource, "getrlimit", getrlimit)


@pytest.mark.parametrize("descriptors", [64, 256, 1024])
def test_half_of_the_descriptors_are_left_to_everything_else(
    monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    limit_descriptors(monkeypatch, descriptors)
    assert connections_for(1000).most_open == descriptors // 2


def test_more_sessions_have_more_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_descriptors(monkeypatch, resource.RLIM_INFINITY)
    assert connections_for(1).most_open < connections_for(2).most_open
