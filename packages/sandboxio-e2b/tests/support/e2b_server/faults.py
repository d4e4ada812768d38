"""Misbehaviour on demand: what a service does on a bad day, told in advance by a test."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .exchange import exchange_of, hang_up, never

__all__ = [
    "GROUPS",
    "OPERATIONS",
    "Cut",
    "Effect",
    "Expire",
    "Fault",
    "Faults",
    "Lose",
    "OmitEnd",
    "Refuse",
    "Silence",
    "Slow",
    "Stall",
]

GROUPS = {
    "control": "create connect info kill list timeout network pause metrics",
    "rpc": "start attach processes signal send_input close_input stream_input "
    "stat make_dir move list_dir remove",
    "files": "read write",
    "contexts": "open_context list_contexts restart_context close_context",
}
OPERATIONS = frozenset(" ".join([*GROUPS.values(), *GROUPS, "health", "execute", "any"]).split())


class Effect(Protocol):
    """Stands between a request and the application that would have answered it."""

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in the application's place, or let it answer and spoil that."""
        ...


@dataclass(frozen=True)
class Refuse:
    """An error instead of an answer; nothing is done.

    Attributes:
        status: The HTTP status.
        message: In the JSON body, with the status as its code.
        body: Instead of that JSON.
        kind: What the body is said to be.
        retry_after: In seconds.
        should_retry: The header by which the service forbids or asks for a retry.
        at_once: Whether it comes before the request has been heard out.
    """

    status: int
    message: str = "the service is having a bad day"
    body: str | None = None
    kind: str = "text/html"
    retry_after: int | None = None
    should_retry: bool | None = None
    at_once: bool = False

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Hear the request out if there is time for it, then refuse it."""
        if not self.at_once:
            async for _ in _requested(receive):
                pass
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        if self.should_retry is not None:
            headers["Should-Retry"] = str(self.should_retry).lower()
        body = self.body
        if body is None:
            body = json.dumps({"code": self.status, "message": self.message})
        kind = "application/json" if self.body is None else self.kind
        await Response(body, self.status, headers, media_type=kind)(scope, receive, send)


@dataclass(frozen=True)
class Cut:
    """The connection ends in the middle of the answer, after so many messages or bytes of its body."""

    after_messages: int | None = None
    after_bytes: int | None = None

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the answer through up to the limit, and hang up."""
        messages, size, over = 0, 0, False

        async def cutting(message: Any) -> None:
            nonlocal messages, size, over
            body = message.get("body", b"")
            if over:
                return
            if body and self.after_bytes is not None and size + len(body) >= self.after_bytes:
                body = body[: self.after_bytes - size]
                over = True
            await send({**message, "body": body, "more_body": True} if "body" in message else message)
            messages, size = messages + bool(body), size + len(body)
            over = over or messages == self.after_messages
            if over:
                exchange_of(scope).connection.close()

        await app(scope, receive, cutting)
        await hang_up(scope, receive)


@dataclass(frozen=True)
class Lose:
    """The request is carried out, but its answer never arrives."""

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Hang up when the answer begins."""

        async def dropping(_message: Any) -> None:
            exchange_of(scope).connection.close()

        await app(scope, receive, dropping)
        await hang_up(scope, receive)


@dataclass(frozen=True)
class OmitEnd:
    """A command's stream without its end event, or a cell's without `end_of_execution`."""

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the endpoint leave it out."""
        exchange_of(scope).omit_end = True
        await app(scope, receive, send)


@dataclass(frozen=True)
class Slow:
    """An answer that takes so many seconds more, `before` or `after` the work is done."""

    before: float = 0.0
    after: float = 0.0

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Hear the request out, wait, carry it out, wait again before the answer is sent."""
        heard = [message async for message in _requested(receive)]

        async def again() -> Any:
            return heard.pop(0) if heard else await receive()

        async def delaying(message: Any) -> None:
            if message["type"] == "http.response.start":
                await asyncio.sleep(self.after)
            await send(message)

        await asyncio.sleep(self.before)
        await app(scope, again, delaying)


@dataclass(frozen=True)
class Silence:
    """The request is accepted and never answered."""

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait until the client gives up."""
        await never(scope, receive, send)


@dataclass(frozen=True)
class Stall:
    """An answer that stops after so many messages, on a connection that stays open."""

    after_messages: int

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the answer begin, and hold all the rest of it back until the client gives up."""
        messages = 0

        async def stalling(message: Any) -> None:
            nonlocal messages
            if messages == self.after_messages and message["type"] == "http.response.body":
                await asyncio.Event().wait()
            await send(message)
            messages += bool(message.get("body"))

        await app(scope, receive, stalling)


@dataclass(frozen=True)
class Expire:
    """The sandbox's lifetime is over when so many messages of the answer have been sent."""

    after_messages: int = 1

    async def play(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Count, and end the sandbox."""
        messages = 0

        async def counting(message: Any) -> None:
            nonlocal messages
            await send(message)
            messages += bool(message.get("body"))
            if messages == self.after_messages:
                exchange_of(scope).end_sandbox()

        await app(scope, receive, counting)


async def _requested(receive: Receive) -> AsyncIterator[Any]:
    """The messages that make up a request, up to its end."""
    more = True
    while more:
        message = await receive()
        yield message
        more = message["type"] == "http.request" and message.get("more_body", False)


@dataclass(frozen=True)
class Fault:
    """What goes wrong, where and how often.

    Attributes:
        operation: One of `OPERATIONS`: an operation, a group of them, or `any`.
        effect: What happens to its requests.
        times: To how many of them; `None` to all.
        skip: How many are left in peace before.
    """

    operation: str
    effect: Effect
    times: int | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"unknown operation {self.operation!r}; there are {sorted(OPERATIONS)}")


@dataclass
class _Armed:
    fault: Fault
    seen: int = 0

    def strikes(self, labels: Collection[str]) -> bool:
        if self.fault.operation not in labels:
            return False
        self.seen += 1
        struck = self.seen - self.fault.skip
        return struck > 0 and (self.fault.times is None or struck <= self.fault.times)


class Faults:
    """The faults in force, and the count of all requests. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: list[_Armed] = []
        self._requests: Counter[str] = Counter()

    @property
    def requests(self) -> Counter[str]:
        """How many requests there were, by operation, by group, and `any` in all."""
        with self._lock:
            return Counter(self._requests)

    @contextmanager
    def misbehave(self, *faults: Fault) -> Iterator[None]:
        """Put these faults in force for the block; the first that fits a request strikes it."""
        armed = [_Armed(fault) for fault in faults]
        with self._lock:
            self._armed[:0] = armed
        try:
            yield
        finally:
            with self._lock:
                self._armed = [each for each in self._armed if each not in armed]

    def meet(self, labels: Collection[str]) -> Effect | None:
        """Count a request, and tell what shall go wrong with it."""
        with self._lock:
            self._requests.update(labels)
            for each in self._armed:
                if each.strikes(labels):
                    return each.fault.effect
        return None
