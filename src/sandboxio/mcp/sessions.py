"""Which sandbox a request belongs to: the process's over stdio, its session's over HTTP, never another's.

The two things that the SDK has and does not offer publicly, its inner server and the connection of a
request, are reached here and nowhere else.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, UnsupportedProtocolVersionErrorData
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from sandboxio.mcp.holder import Profile, SandboxHolder

__all__ = ["OnePerProcess", "OnePerSession", "Request", "Sandboxes", "inner_server", "sessions_only"]

_STATE_KEY: Final = "sandboxio.holder"


class Sandboxes(Protocol):
    """Says which holder a request's sandbox comes from."""

    def holder_for(self, request: Request) -> SandboxHolder:
        """The holder of the session that the request belongs to."""
        ...


Request: TypeAlias = Context[Sandboxes, Any]
"""What a tool knows about the call it serves."""


class OnePerProcess:
    """One sandbox for all requests, since a stdio server has one client.

    Args:
        holder: What everybody shares; its owner closes it.

    Example: `OnePerProcess(holder)`
    """

    def __init__(self, holder: SandboxHolder) -> None:
        self._holder = holder

    def holder_for(self, request: Request) -> SandboxHolder:
        """The one there is."""
        return self._holder


class OnePerSession:
    """A sandbox for each MCP session, tied to the SDK's own object for the session and ended with it.

    Args:
        profile: What sandboxes are made with.

    Example: `OnePerSession(profile)`
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def holder_for(self, request: Request) -> SandboxHolder:
        """That of the request's session, which is made with its first call.

        Raises:
            MCPError: The request belongs to no session.
        """
        connection = _connection_of(request)
        if connection.session_id is None:
            raise MCPError(INVALID_REQUEST, "this server needs a session: send initialize first")
        holder: SandboxHolder | None = connection.state.get(_STATE_KEY)
        if holder is None:
            holder = SandboxHolder(self._profile)
            connection.state[_STATE_KEY] = holder
            connection.exit_stack.push_async_callback(holder.close)
        return holder


async def sessions_only(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse protocol versions that have no sessions, naming those that have.

    Since 2026-07-28 a request over HTTP stands alone, so nothing would tell whose sandbox it means. Clients
    fall back to the handshake when they are told the versions that begin with one.

    Raises:
        MCPError: The request is of such a version.
    """
    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        data = UnsupportedProtocolVersionErrorData(
            supported=list(HANDSHAKE_PROTOCOL_VERSIONS), requested=ctx.protocol_version
        )
        raise MCPError(
            UNSUPPORTED_PROTOCOL_VERSION,
            "over HTTP this server needs a protocol version with sessions, one sandbox each",
            data.model_dump(mode="json"),
        )
    return await call_next(ctx)


def inner_server(server: MCPServer[Any]) -> Server[Any]:
    """The server that takes a pair of streams; its own `run` always takes those of the process."""
    return server._lowlevel_server  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _connection_of(request: Request) -> Connection:
    # Its `exit_stack` is the SDK's place for what ends with a session, and this is the only way to it.
    session: ServerSession = request.session
    return session._connection  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
