"""The stdio transport: one client, this process's standard input and output, and one sandbox."""

from __future__ import annotations

from typing import Any, cast

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

from sandboxio.mcp.sessions import Sandboxes, inner_server
from sandboxio.mcp.signals import stop_on_signal
from sandboxio.mcp.wire import InputLines, OutputText, Wire

__all__ = ["serve_stdio"]


async def serve_stdio(server: MCPServer[Sandboxes], wire: Wire) -> int:
    """Serve until the client closes its end or a signal comes; the sandbox has ended when this returns.

    Args:
        server: What is served.
        wire: What `claim_stdio()` gave.

    Returns:
        The number of the signal, 0 without one.

    Example: `signal_number = await serve_stdio(server, claim_stdio())`
    """
    received: list[int] = []
    async with anyio.create_task_group() as group:
        group.start_soon(stop_on_signal, group.cancel_scope.cancel, received)
        # The SDK iterates over the one, and writes to and flushes the other; more it does not ask for.
        reader, writer = cast(Any, InputLines(wire.input_fd)), cast(Any, OutputText(wire.output_fd))
        inner = inner_server(server)
        async with stdio_server(reader, writer) as (requests, responses):
            await inner.run(requests, responses, inner.create_initialization_options())
        group.cancel_scope.cancel()
    return received[0] if received else 0
