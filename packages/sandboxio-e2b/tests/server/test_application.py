"""What belongs to a sandbox while a request is served, and no longer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

from e2b_server.application import _serve_until_over
from e2b_server.exchange import Exchange
from e2b_server.ports import Egress
from e2b_server.state import Sandbox


def running_sandbox() -> Sandbox:
    now = datetime.now(UTC)
    return Sandbox("i1", "base", {}, {}, {}, None, Egress(open=True), now, now, state="running")


async def serve(sandbox: Sandbox, *, complete: bool) -> tuple[Mock, asyncio.Task[None]]:
    """Serve an answer that goes on working after it was sent, completely or not."""
    connection = Mock(spec=asyncio.Transport)
    sent = asyncio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": not complete})
        sent.set()
        await asyncio.Event().wait()

    async def send(_message: Any) -> None:
        pass

    scope = {"exchange": Exchange(frozenset(), connection, sandbox)}
    task = asyncio.create_task(_serve_until_over(app, scope, Mock(), send))
    await sent.wait()
    return connection, task


async def test_an_answer_in_the_making_is_broken_off_with_its_sandbox() -> None:
    sandbox = running_sandbox()
    connection, task = await serve(sandbox, complete=False)
    sandbox.state = "stopping"
    sandbox.break_off()
    connection.abort.assert_called_once_with()
    await task
    assert sandbox.exchanges == {}


async def test_a_connection_is_let_go_when_the_answer_is_complete() -> None:
    # The client may have sent its next request over it, and that one may be the kill.
    sandbox = running_sandbox()
    connection, task = await serve(sandbox, complete=True)
    sandbox.break_off()
    connection.abort.assert_not_called()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
