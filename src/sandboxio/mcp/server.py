"""The server object: the SDK's, with our tools and one rule for whose sandbox a call gets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from mcp.server.context import ServerMiddleware
from mcp.server.mcpserver import MCPServer

from sandboxio import __version__
from sandboxio.logs import debugging
from sandboxio.mcp.catalog import INSTRUCTIONS, register_tools
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.holder import Profile, SandboxHolder
from sandboxio.mcp.progress import PROGRESS_SECONDS
from sandboxio.mcp.sessions import OnePerProcess, OnePerSession, Sandboxes, sessions_only
from sandboxio.mcp.tools import Tools

__all__ = ["server_for_process", "server_for_sessions"]

NAME: Final = "sandboxio"
TITLE: Final = "sandboxio: run code in a sandbox"


def server_for_process(
    profile: Profile, redaction: Redaction, *, progress_seconds: float = PROGRESS_SECONDS
) -> MCPServer[Sandboxes]:
    """A server whose requests all share one sandbox, which ends when the server stops running.

    Args:
        profile: What the sandbox is made with.
        redaction: What must not reach a model.
        progress_seconds: Seconds between two signs of life of a long call.

    Example: `server = server_for_process(profile, Redaction.of_process())`
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer[Sandboxes]) -> AsyncGenerator[Sandboxes, None]:
        async with SandboxHolder(profile) as holder:
            yield OnePerProcess(holder)

    return _server(profile, redaction, lifespan, progress_seconds)


def server_for_sessions(
    profile: Profile, redaction: Redaction, *, progress_seconds: float = PROGRESS_SECONDS
) -> MCPServer[Sandboxes]:
    """A server that gives each MCP session a sandbox of its own, ended with the session. Arguments as above.

    Example: `app = server_for_sessions(profile, redaction).streamable_http_app()`
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer[Sandboxes]) -> AsyncGenerator[Sandboxes, None]:
        yield OnePerSession(profile)

    return _server(profile, redaction, lifespan, progress_seconds, [sessions_only])


def _server(
    profile: Profile,
    redaction: Redaction,
    lifespan: Callable[[MCPServer[Sandboxes]], AbstractAsyncContextManager[Sandboxes]],
    progress_seconds: float,
    middleware: Sequence[ServerMiddleware[Any]] = (),
) -> MCPServer[Sandboxes]:
    server: MCPServer[Any] = MCPServer(
        NAME,
        title=TITLE,
        instructions=INSTRUCTIONS,
        version=__version__,
        lifespan=lifespan,
        middleware=middleware,
        log_level="DEBUG" if debugging() else "WARNING",
    )
    register_tools(
        server, Tools(redaction, progress_seconds=progress_seconds), reaches_out=profile.reaches_out
    )
    return server
