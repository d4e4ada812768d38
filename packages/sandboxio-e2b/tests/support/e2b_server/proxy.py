"""A proxy that lets connections through by the name they ask for, as E2B's does."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

__all__ = ["NameProxy", "covered", "host_header", "server_name"]

_HEAD_LIMIT: Final = 64 * 1024
_HEAD_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 10.0
_PIECE: Final = 64 * 1024

Look = Callable[[bytes], str | None]


class Incomplete(Exception):
    """More bytes are needed to tell."""


def covered(name: str, rules: Sequence[str]) -> bool:
    """Whether a list of names (`*.suffix` for those below one) holds a name."""
    name = name.lower().removesuffix(".")
    return any(
        name.endswith(rule[1:]) if rule.startswith("*.") else name == rule
        for rule in (rule.lower() for rule in rules)
    )


def host_header(head: bytes) -> str | None:
    """The name in the Host header of an HTTP request, `None` when there is none.

    Raises:
        Incomplete: The head has not ended.
    """
    lines, end, _ = head.partition(b"\r\n\r\n")
    if not end:
        raise Incomplete
    for line in lines.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"host":
            host = value.strip().decode("latin-1")
            return host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and ":" in host else host
    return None


def server_name(head: bytes) -> str | None:
    """The server name in a TLS client's first message, `None` when there is none.

    Raises:
        Incomplete: The message has not ended.
    """
    names: list[str | None] = []
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def note(_: ssl.SSLObject | ssl.SSLSocket, name: str | None, __: ssl.SSLContext) -> int:
        names.append(name)
        return ssl.ALERT_DESCRIPTION_ACCESS_DENIED

    context.sni_callback = note
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(head)
    try:
        server.do_handshake()
    except ssl.SSLWantReadError:
        raise Incomplete from None
    except ssl.SSLError:
        pass
    return names[0] if names else None


class NameProxy:
    """Two listeners, one for HTTP and one for TLS, for one client address."""

    def __init__(self, rules: Sequence[str], names: Mapping[str, str], client: str) -> None:
        self._rules = rules
        self._names = names
        self._client = client
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls, rules: Sequence[str], names: Mapping[str, str], *, address: str, client: str
    ) -> NameProxy:
        """Listen on an address."""
        proxy = cls(rules, names, client)
        try:
            for look, port in ((host_header, 80), (server_name, 443)):
                server = await asyncio.start_server(proxy._handler(look, port), address, 0)
                proxy._servers.append(server)
        except BaseException:
            await proxy.close()
            raise
        return proxy

    @property
    def http_port(self) -> int:
        """Where HTTP is taken."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    @property
    def tls_port(self) -> int:
        """Where TLS is taken."""
        return int(self._servers[1].sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _handler(
        self, look: Look, port: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                if writer.get_extra_info("peername")[0] == self._client:
                    await self._serve(reader, writer, look, port)
                writer.close()
            except (OSError, TimeoutError, asyncio.CancelledError):
                writer.transport.abort()
            finally:
                self._tasks.discard(task)

        return handle

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, look: Look, port: int
    ) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head, name = await _read_head(reader, look)
        if name is None or not covered(name, self._rules):
            return
        async with asyncio.timeout(_CONNECT_SECONDS):
            up_reader, up_writer = await asyncio.open_connection(self._names.get(name.lower(), name), port)
        try:
            up_writer.write(head)
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, up_writer))
                group.create_task(_copy(up_reader, writer))
        finally:
            up_writer.close()


async def _read_head(reader: asyncio.StreamReader, look: Look) -> tuple[bytes, str | None]:
    head = b""
    while len(head) < _HEAD_LIMIT:
        piece = await reader.read(_PIECE)
        if not piece:
            break
        head += piece
        with contextlib.suppress(Incomplete):
            return head, look(head)
    return head, None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
