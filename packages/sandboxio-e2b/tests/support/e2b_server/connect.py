"""The Connect protocol with its JSON codec: unary calls, server streams and client streams."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from .exchange import exchange_of, sandbox_of
from .ports import Machine, MachineError
from .schema import Check, Malformed, read
from .state import Sandbox
from .streaming import Streamed

__all__ = ["DEFAULT_USER", "Call", "Message", "RpcError", "client_stream", "server_stream", "unary"]

DEFAULT_USER = "user"

Message = Mapping[str, Any]
Endpoint = Callable[[Request], Awaitable[Response]]

_UNARY, _STREAM = "application/json", "application/connect+json"
_LARGEST_MESSAGE = 16 * 1024 * 1024
_END_OF_STREAM = 2
_STATUS = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


class RpcError(Exception):
    """A call that fails with one of Connect's codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Call:
    """A call whose headers are in order.

    Attributes:
        timeout: In seconds, as the client asked; `None` for no limit.
        keepalive: Seconds of silence after which a stream sends a sign of life.
        omit_end: The stream shall lack its own last event.
    """

    sandbox: Sandbox
    timeout: float | None
    keepalive: float | None
    omit_end: bool

    @property
    def machine(self) -> Machine:
        """Where the call takes effect."""
        return self.sandbox.machine

    @property
    def deadline(self) -> float | None:
        """The timeout's end on the event loop's clock, counted from now."""
        return None if self.timeout is None else asyncio.get_running_loop().time() + self.timeout


def unary(answer: Callable[[Call, Any], Awaitable[Message]], check: Check) -> Endpoint:
    """An endpoint for one message in and one out."""

    async def endpoint(request: Request) -> Response:
        if not _has_type(request, _UNARY):
            return _unsupported_type(_UNARY)
        try:
            call = _call(request)
            async with asyncio.timeout(call.timeout):
                return JSONResponse(await answer(call, read(await _body(request), check)))
        except Exception as error:
            failure = _failure(error)
            body = {"code": failure.code, "message": failure.message}
            return JSONResponse(body, _STATUS.get(failure.code, 500))

    return endpoint


def server_stream(
    answer: Callable[[Call, Any], Awaitable[AsyncGenerator[Message, None]]], check: Check
) -> Endpoint:
    """An endpoint for one message in and many out; what fails before the first still has status 200."""

    async def endpoint(request: Request) -> Response:
        if not _has_type(request, _STREAM):
            return _unsupported_type(_STREAM)
        try:
            call = _call(request)
            messages = [message async for message in _enveloped(request.stream())]
            if len(messages) != 1:
                raise RpcError("invalid_argument", f"expected one message, got {len(messages)}")
            events = await answer(call, read(messages[0], check))
        except Exception as error:
            return Response(_end(_failure(error)), media_type=_STREAM)
        return Streamed(_envelopes(events), media_type=_STREAM)

    return endpoint


def client_stream(answer: Callable[[Call, AsyncIterator[Any]], Awaitable[Message]], check: Check) -> Endpoint:
    """An endpoint for many messages in and one out."""

    async def endpoint(request: Request) -> Response:
        if not _has_type(request, _STREAM):
            return _unsupported_type(_STREAM)
        try:
            call = _call(request)
            async with asyncio.timeout(call.timeout):
                result = await answer(call, _checked(request, check))
        except Exception as error:
            return Response(_end(_failure(error)), media_type=_STREAM)
        return Response(_envelope(0, result) + _end(None), media_type=_STREAM)

    return endpoint


async def _checked(request: Request, check: Check) -> AsyncIterator[Any]:
    async for raw in _enveloped(request.stream()):
        yield read(raw, check)


def _has_type(request: Request, wanted: str) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0]
    return kind.strip().lower() == wanted


def _unsupported_type(wanted: str) -> Response:
    return PlainTextResponse("", 415, headers={"Accept-Post": wanted})


def _call(request: Request) -> Call:
    headers = request.headers
    if headers.get("connect-protocol-version") != "1":
        raise RpcError("invalid_argument", 'missing required header: set Connect-Protocol-Version to "1"')
    for name in ("content-encoding", "connect-content-encoding"):
        if headers.get(name, "identity") != "identity":
            raise RpcError("unimplemented", f"unknown compression {headers[name]!r}")
    _check_user(headers.get("authorization"))
    milliseconds = headers.get("connect-timeout-ms")
    if milliseconds is not None and not (milliseconds.isdecimal() and len(milliseconds) <= 10):
        raise RpcError("invalid_argument", f"protocol error: invalid timeout {milliseconds!r}")
    seconds = headers.get("keepalive-ping-interval")
    if seconds is not None and not (seconds.isdecimal() and int(seconds) > 0):
        raise RpcError("invalid_argument", f"invalid keepalive interval {seconds!r}")
    return Call(
        sandbox=sandbox_of(request.scope),
        timeout=None if milliseconds is None else int(milliseconds) / 1000,
        keepalive=90.0 if seconds is None else float(seconds),
        omit_end=exchange_of(request.scope).omit_end,
    )


def _check_user(authorization: str | None) -> None:
    if authorization is None:
        return
    scheme, _, credentials = authorization.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError
        name = base64.b64decode(credentials, validate=True).decode("utf-8").partition(":")[0]
    except ValueError as error:
        raise RpcError("unauthenticated", "invalid Authorization header") from error
    if name != DEFAULT_USER:
        raise RpcError("unauthenticated", f"invalid username: {name!r}")


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_MESSAGE:
            raise RpcError("resource_exhausted", f"message is larger than {_LARGEST_MESSAGE} bytes")
    return bytes(body)


async def _enveloped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The messages in a request's body."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        while len(buffer) >= 5:
            flags, size = struct.unpack_from(">BI", buffer)
            if flags != 0:
                raise RpcError("invalid_argument", f"protocol error: invalid envelope flags {flags:08b}")
            if size > _LARGEST_MESSAGE:
                raise RpcError("resource_exhausted", f"message size {size} is larger than configured max")
            if len(buffer) < 5 + size:
                break
            message = bytes(buffer[5 : 5 + size])
            del buffer[: 5 + size]
            yield message
    if buffer:
        raise RpcError("invalid_argument", "protocol error: incomplete envelope")


async def _envelopes(events: AsyncGenerator[Message, None]) -> AsyncGenerator[bytes, None]:
    failure = None
    try:
        async for event in events:
            yield _envelope(0, event)
    except Exception as error:
        failure = _failure(error)
    finally:
        await events.aclose()
    yield _end(failure)


def _envelope(flags: int, message: Message) -> bytes:
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return struct.pack(">BI", flags, len(data)) + data


def _end(failure: RpcError | None) -> bytes:
    if failure is None:
        return _envelope(_END_OF_STREAM, {})
    return _envelope(_END_OF_STREAM, {"error": {"code": failure.code, "message": failure.message}})


def _failure(error: Exception) -> RpcError:
    """The error in Connect's words; one that this server did not foresee goes on as it is."""
    match error:
        case RpcError():
            return error
        case MachineError():
            return RpcError(error.code, error.message)
        case Malformed():
            return RpcError("invalid_argument", str(error))
        case TimeoutError():
            return RpcError("deadline_exceeded", "context deadline exceeded")
    raise error
