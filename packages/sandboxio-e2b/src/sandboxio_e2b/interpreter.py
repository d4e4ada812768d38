"""Calling the code interpreter.

The SDK's own `run_code` keeps all that a cell writes, without a bound. So the request is made with the
SDK's client, address and token, and the answer is read here.

A cell may have to wait for another one that prepares its kernel. Its request can be under way meanwhile:
it is sent but for its last byte, the brace that closes its JSON. Whoever took the rest for all of it,
against its length, could still not read it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Final

import httpx
from e2b_code_interpreter import AsyncSandbox
from e2b_code_interpreter.constants import JUPYTER_PORT
from e2b_code_interpreter.models import aextract_exception

from sandboxio.errors import ConnectError
from sandboxio_e2b.messages import read_messages

__all__ = ["execute", "run_to_end"]

_ANSWER_LIMIT: Final = 4096


async def execute(
    native: AsyncSandbox,
    context_id: str,
    code: str,
    *,
    turn: asyncio.Event | None = None,
    answered: Callable[[], None] | None = None,
) -> AsyncGenerator[Mapping[str, Any]]:
    """The messages of one cell, without any deadline: closing this early interrupts the kernel.

    Args:
        native: The SDK's sandbox.
        context_id: E2B's id of an open context.
        code: The cell.
        turn: What the cell waits for, with its request under way; closing this before it is set means
            that the cell does not run.
        answered: Called when the answer begins, which is mostly before the cell does.

    Raises:
        ConnectError: The answer came before the cell's turn, so it is not about the cell.
        Exception: Whatever the SDK makes of a refusal.
    """
    cell = {"code": code, "context_id": context_id, "language": None, "env_vars": None}
    body = json.dumps(cell).encode("ascii")
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "E2b-Sandbox-Id": native.sandbox_id,
        "E2b-Sandbox-Port": str(JUPYTER_PORT),
    }
    if token := native._envd_access_token:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- a test pins it
        headers["X-Access-Token"] = token
    if native.traffic_access_token:
        headers["E2B-Traffic-Access-Token"] = native.traffic_access_token
    client, url = native._client, native._jupyter_url  # noqa: SLF001
    async with client.stream(
        "POST",
        f"{url}/execute",
        content=body if turn is None else _held(body, turn),
        headers=headers,
        timeout=httpx.Timeout(None),
    ) as response:
        error = await aextract_exception(response)
        if error is not None:
            raise error
        if turn is not None and not turn.is_set():
            raise ConnectError("the code interpreter answered before it was sent a cell whole")
        if answered is not None:
            answered()
        async for message in read_messages(response.aiter_bytes()):
            yield message


async def run_to_end(
    native: AsyncSandbox, context_id: str, code: str, answered: Callable[[], None] | None = None
) -> str:
    """Run code of this adapter's own in a context, and return the beginning of what it wrote.

    Args:
        native: The SDK's sandbox.
        context_id: E2B's id of an open context.
        code: The cell.
        answered: Called when the answer begins.

    Raises:
        ConnectError: It did not end as it should.
    """
    ended, written = False, ""
    async for message in execute(native, context_id, code, answered=answered):
        if message.get("type") == "stdout" and len(written) < _ANSWER_LIMIT:
            written += str(message.get("text", ""))[:_ANSWER_LIMIT]
        if message.get("type") == "error":
            raise ConnectError(f"a cell could not be prepared: {str(message.get('name'))[:80]}")
        ended = ended or message.get("type") == "end_of_execution"
    if not ended:
        raise ConnectError("the connection ended while a cell was prepared", hint="run it again")
    return written


async def _held(body: bytes, turn: asyncio.Event) -> AsyncIterator[bytes]:
    yield body[:-1]
    await turn.wait()
    yield body[-1:]
