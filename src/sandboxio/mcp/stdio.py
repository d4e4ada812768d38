"""The stdio transport: one client, this process's standard input and output, and one sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage

from sandboxio.logs import get_logger
from sandboxio.mcp.frames import MalformedFrame, read_frame, written_frame
from sandboxio.mcp.sessions import Sandboxes, inner_server
from sandboxio.mcp.signals import EndingSignals
from sandboxio.mcp.wire import InputLines, OutputText, Wire

__all__ = ["serve_stdio"]

_Answers: TypeAlias = "MemoryObjectSendStream[SessionMessage]"


async def serve_stdio(server: MCPServer[Sandboxes], wire: Wire, signals: EndingSignals) -> None:
    """Serve until the client closes its end or a signal comes; the sandbox has ended when this returns.

    Args:
        server: What is served.
        wire: What `claim_stdio()` gave.
        signals: What ends it.

    Example: `await serve_stdio(server, claim_stdio(), signals)`
    """
    requests, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, given = anyio.create_memory_object_stream[SessionMessage]()
    inner = inner_server(server)
    async with anyio.create_task_group() as group:
        end = group.cancel_scope.cancel
        group.start_soon(_end_at_signal, signals, end)
        async with anyio.create_task_group() as transport:
            transport.start_soon(_read, InputLines(wire.input_fd), requests, answers.clone())
            transport.start_soon(_write, given, OutputText(wire.output_fd), end)
            await inner.run(received, answers, inner.create_initialization_options())
        end()


async def _end_at_signal(signals: EndingSignals, end: Callable[[], None]) -> None:
    await signals.wait()
    end()


async def _read(
    lines: InputLines, requests: MemoryObjectSendStream[SessionMessage | Exception], answers: _Answers
) -> None:
    async with requests, answers:
        async for line in lines:
            if line.isspace():
                continue
            try:
                await requests.send(SessionMessage(read_frame(line)))
            except MalformedFrame as exc:
                get_logger("sandboxio.mcp").warning("%s", exc)
                if exc.answer is not None:
                    await answers.send(SessionMessage(exc.answer))


async def _write(
    given: MemoryObjectReceiveStream[SessionMessage], output: OutputText, end: Callable[[], None]
) -> None:
    async with given:
        try:
            async for message in given:
                await output.write(written_frame(message.message))
        except anyio.ClosedResourceError:  # a client that reads no more has left
            end()
