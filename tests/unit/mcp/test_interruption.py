"""Requests that are turned away or ended, and what their clients get."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from sandboxio.mcp.interruption import Interruptible

BOUND = 10.0
START: Message = {"type": "http.response.start", "status": 200, "headers": []}
PART: Message = {"type": "http.response.body", "body": b"part", "more_body": True}
END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


async def receive() -> Any:
    await anyio.sleep_forever()


async def interrupted(*before: Message) -> list[Message]:
    """What a client gets of a request that has got this far."""
    sent: list[Message] = []
    stuck = anyio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in before:
            await send(message)
        stuck.set()
        await anyio.sleep_forever()

    async def send(message: Message) -> None:
        sent.append(message)

    application = Interruptible(app)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(application, {"type": "http"}, receive, send)
            await stuck.wait()
            application.interrupt()
    return sent


@pytest.mark.parametrize("before", [[START], [START, PART]], ids=["head", "part"])
async def test_a_response_that_has_begun_is_ended(before: list[Message]) -> None:
    assert await interrupted(*before) == [*before, END]


async def test_a_request_without_a_response_is_answered_503() -> None:
    start, body = await interrupted()
    assert start["status"] == 503
    assert not body.get("more_body")


async def test_a_response_that_is_complete_has_nothing_added() -> None:
    assert await interrupted(START, END) == [START, END]


async def test_a_request_that_is_refused_does_not_begin() -> None:
    sent: list[Message] = []

    async def app(*_: Any) -> None:
        raise AssertionError("it began")

    async def send(message: Message) -> None:
        sent.append(message)

    application = Interruptible(app)
    application.refuse()
    await application({"type": "http"}, receive, send)
    assert sent[0]["status"] == 503


async def test_a_request_in_progress_goes_on_while_others_are_refused() -> None:
    sent: list[Message] = []
    application: Interruptible

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        application.refuse()
        await send(START)
        await send(END)

    async def send(message: Message) -> None:
        sent.append(message)

    application = Interruptible(app)
    await application({"type": "http"}, receive, send)
    assert sent == [START, END]
