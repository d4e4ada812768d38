"""The engine's HTTP API: requests, streamed bodies and hijacked connections.

Every call opens a connection of its own, so there is no pool to tear down, no state of an event
loop, and nothing that one slow answer could hold up.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from sandboxio_docker.answer import Answer, answered_list, answered_object
from sandboxio_docker.errors import UnexpectedAnswer
from sandboxio_docker.exchange import Exchange, Head
from sandboxio_docker.stream import ByteStream
from sandboxio_docker.transport import Transport

__all__ = ["Engine", "Hijacked", "Reply", "Transfer"]

ANSWER_LIMIT: Final = 16 * 1024 * 1024
DEFAULT_TIMEOUT: Final = 60.0
NEWEST_API: Final = (1, 51)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer."""

    head: Head
    body: bytes

    def json(self) -> Answer:
        """The object in the body.

        Raises:
            UnexpectedAnswer: There is none.
        """
        return answered_object(self.body)


@dataclass(frozen=True, slots=True)
class Transfer:
    """An answer whose body is read as it comes."""

    head: Head
    _exchange: Exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._exchange.piece()
        if piece is None:
            raise StopAsyncIteration
        return piece


@dataclass(frozen=True, slots=True)
class Hijacked:
    """A connection that has become the streams of an execution.

    Attributes:
        stream: The connection; whoever has this owns it.
        leftover: Bytes that arrived already.
    """

    stream: ByteStream
    leftover: bytes


class Engine:
    """One Docker engine.

    Args:
        transport: How it is reached.

    Example: `(await engine.get("/info"))["Runtimes"]`
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._version: tuple[int, int] | None = None

    async def version(self) -> tuple[int, int]:
        """The API version in use: the engine's, or the newest known here if that is lower."""
        if self._version is None:
            reply = await self._exchange_once("HEAD", "/_ping", {}, None, 15.0)
            major, _, minor = reply.head.headers.get("api-version", "1.41").partition(".")
            try:
                found = (int(major), int(minor))
            except ValueError as exc:
                raise UnexpectedAnswer("it names no API version") from exc
            self._version = min(found, NEWEST_API)
        return self._version

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Reply:
        """Make a request and read its whole answer, which is bounded in size and time.

        Raises:
            EngineError: The engine refused, or answered nonsense.
            EngineTimeout, EngineUnreachable: It did not answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        target = await self._target(path, query)
        return await self._exchange_once(method, target, headers, data, timeout)

    async def get(self, path: str, /, **query: str) -> Answer:
        """The object at `path`. Errors are those of `request`, and `UnexpectedAnswer`."""
        return (await self.request("GET", path, query=query)).json()

    async def get_list(self, path: str, /, **query: str) -> list[Answer]:
        """The list of objects at `path`. Errors are those of `get`."""
        return answered_list((await self.request("GET", path, query=query)).body)

    async def post(
        self, path: str, body: Any = None, /, *, timeout: float = DEFAULT_TIMEOUT, **query: str
    ) -> Answer:
        """Post JSON and return the object that is answered. Errors are those of `get`."""
        return (await self.request("POST", path, query=query, body=body, timeout=timeout)).json()

    @asynccontextmanager
    async def download(self, path: str, /, **query: str) -> AsyncGenerator[Transfer]:
        """Read a body of any size as it comes; leaving the context breaks it off."""
        exchange = await self._open(f"GET {path}", DEFAULT_TIMEOUT)
        try:
            await exchange.send_head("GET", await self._target(path, query), {})
            await exchange.end_request()
            yield Transfer(await exchange.head(), exchange)
        finally:
            exchange.close()

    async def upload(self, path: str, data: AsyncIterator[bytes], size: int, /, **query: str) -> None:
        """Put a tar archive of exactly `size` bytes as it comes."""
        exchange = await self._open(f"PUT {path}", DEFAULT_TIMEOUT)
        try:
            headers = {
                "Content-Type": "application/x-tar",
                "Content-Length": str(size),
                "Connection": "close",
            }
            await exchange.send_head("PUT", await self._target(path, query), headers)
            async for piece in data:
                await exchange.send_body(piece)
            await exchange.end_request()
            await exchange.head()
        finally:
            exchange.close()

    async def hijack(self, path: str, body: Any, *, timeout: float = DEFAULT_TIMEOUT) -> Hijacked:
        """Post JSON and take the connection over for raw streams."""
        data = json.dumps(body).encode()
        exchange = await self._open(f"POST {path}", timeout)
        try:
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                "Connection": "Upgrade",
                "Upgrade": "tcp",
            }
            await exchange.send_head("POST", await self._target(path, None), headers)
            await exchange.send_body(data)
            await exchange.end_request()
            head = await exchange.head()
            if head.status != 101:
                raise UnexpectedAnswer(f"it answered {head.status} instead of handing over the streams")
            return Hijacked(exchange.stream, exchange.leftover())
        except BaseException:
            exchange.close()
            raise

    async def subscribe(self, path: str, /, **query: str) -> Exchange:
        """Send a request and leave its answer unread; the caller owns the exchange."""
        exchange = await self._open(f"GET {path}", DEFAULT_TIMEOUT)
        try:
            await exchange.send_head("GET", await self._target(path, query), {})
            await exchange.end_request()
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def _exchange_once(
        self, method: str, target: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> Reply:
        exchange = await self._open(f"{method} {target.partition('?')[0]}", timeout)
        try:
            length = {} if data is None else {"Content-Length": str(len(data))}
            await exchange.send_head(method, target, {**headers, **length, "Connection": "close"})
            if data:
                await exchange.send_body(data)
            await exchange.end_request()
            head = await exchange.head()
            return Reply(head, await exchange.read_body(ANSWER_LIMIT))
        finally:
            exchange.close()

    async def _open(self, doing: str, timeout: float) -> Exchange:
        return Exchange(await self.transport.connect(), doing, timeout)

    async def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        major, minor = await self.version()
        suffix = f"?{urlencode(query, quote_via=quote, errors='surrogateescape')}" if query else ""
        return f"/v{major}.{minor}{path}{suffix}"
