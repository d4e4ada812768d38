"""Connections over HTTP, so bounded that strangers cannot take every descriptor of the process.

A connection costs a descriptor before it has shown a token. uvicorn takes as many as come, and waits without
end for a request to arrive.
"""

from __future__ import annotations

import asyncio
import resource
from typing import ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BACKLOG", "BoundedConnection", "connections_for"]

BACKLOG: Final = 32
"""How many connections the event loop accepts in one go, before the first of them is counted."""
ARRIVAL_SECONDS: Final = 30.0
"""How long a request may take to arrive, from the connection's start or from the answer before it."""
PER_SESSION: Final = 8
"""A session has one for its stream and one for each call in progress."""
SPARE: Final = 64
"""Connections beyond those of the sessions: of clients that come, go, or are turned away."""


class BoundedConnection(H11Protocol):
    """One connection of at most `most_open`.

    One more takes the place of the one that a request has been awaited from for the longest time, so those
    that send nothing keep nobody out.
    """

    most_open: ClassVar[int] = SPARE

    awaited_since = 0.0
    """When it began to wait for a request, on the event loop's clock."""

    _deadline: asyncio.TimerHandle | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether the client has yet to send a request, or the rest of one."""
        answering = self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)
        return not answering or self.conn.their_state is h11.SEND_BODY

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Await a request, and let another connection go where there is no room."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > self.most_open:
            self._make_room()

    def on_response_complete(self) -> None:
        """Await the next request."""
        self._await_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing any more."""
        self._stop_awaiting()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        ours = (one for one in self.connections if isinstance(one, BoundedConnection))
        # This very connection, if there is no other.
        oldest = min((one for one in ours if one.is_awaited), key=lambda one: one.awaited_since)
        self.connections.discard(oldest)
        oldest.transport.abort()

    def _await_request(self) -> None:
        self._stop_awaiting()
        self.awaited_since = self.loop.time()
        self._deadline = self.loop.call_later(ARRIVAL_SECONDS, self._close_if_awaited)

    def _stop_awaiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _close_if_awaited(self) -> None:
        if self.is_awaited:
            self.transport.close()


def connections_for(sessions: int) -> type[BoundedConnection]:
    """The connections of a server with so many sessions, and at most half of the process's descriptors.

    Example: `uvicorn.Config(app, http=connections_for(16), backlog=BACKLOG)`
    """
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SPARE + PER_SESSION * sessions
    most = wanted if descriptors == resource.RLIM_INFINITY else min(wanted, descriptors // 2)

    class Connection(BoundedConnection):
        most_open = most

    return Connection
