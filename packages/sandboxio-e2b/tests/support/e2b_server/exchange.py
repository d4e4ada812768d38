"""What is known of one HTTP exchange besides its request, and the connection it came over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from .state import Sandbox

__all__ = ["Connection", "Exchange", "disconnected", "exchange_of", "hang_up", "sandbox_of"]


@dataclass
class Exchange:
    """One request and its answer.

    Attributes:
        labels: The operation's name and the groups it belongs to, `any` included.
        connection: The socket's transport: closing it is the one way to break an answer off.
        sandbox: Whose traffic it is; `None` on the control plane.
        end_sandbox: Ends that sandbox as if its lifetime were over.
        omit_end: The answer shall lack the message that says it is complete.
    """

    labels: frozenset[str]
    connection: asyncio.Transport
    sandbox: Sandbox | None = None
    end_sandbox: Callable[[], None] = lambda: None
    omit_end: bool = False


class Connection(H11Protocol):
    """HTTP/1.1 that lets the application reach the transport below it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Put the transport where every request of this connection finds it."""
        super().connection_made(transport)
        served = self.app

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope["transport"] = transport
            await served(scope, receive, send)

        self.app = with_transport


def exchange_of(scope: Scope) -> Exchange:
    """The exchange that a request belongs to."""
    exchange = scope["exchange"]
    assert isinstance(exchange, Exchange)
    return exchange


def sandbox_of(scope: Scope) -> Sandbox:
    """The sandbox that a request is addressed to."""
    sandbox = exchange_of(scope).sandbox
    assert sandbox is not None
    return sandbox


async def disconnected(receive: Receive) -> None:
    """Return when the client is gone, dropping what is left of its request."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def hang_up(scope: Scope, receive: Receive) -> None:
    """Close the connection once what was written to it is out; the answer stays unfinished."""
    exchange_of(scope).connection.close()
    await disconnected(receive)


async def never(_scope: Scope, receive: Receive, _send: Send) -> None:
    """An application that accepts a request and does not answer."""
    await disconnected(receive)
