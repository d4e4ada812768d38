"""Lines of the stdio transport as messages, and what is answered where a line is none.

The SDK leaves a line that it cannot read without an answer, and takes a request whose id is neither text
nor a whole number for a notification. Either way the client would wait for ever.
"""

from __future__ import annotations

import json
from typing import Any, cast

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

__all__ = ["MalformedFrame", "read_frame", "written_frame"]


class MalformedFrame(Exception):
    """A line that is no message.

    Attributes:
        answer: What the client is told; `None` for what JSON-RPC leaves unanswered: notifications and
            answers.
    """

    def __init__(self, answer: JSONRPCError | None) -> None:
        super().__init__("a line of the client is no message of the protocol")
        self.answer = answer


def read_frame(line: str) -> JSONRPCMessage:
    """The message on a line.

    Raises:
        MalformedFrame: There is none.

    Example: `read_frame('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')`
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as exc:
        unreadable = any(error["type"] == "json_invalid" for error in exc.errors(include_input=False))
        raise MalformedFrame(_refusal(line, unreadable=unreadable)) from exc
    if isinstance(message, JSONRPCNotification) and "id" in json.loads(line):
        raise MalformedFrame(_error(None, INVALID_REQUEST, "the id is neither text nor a whole number"))
    return message


def written_frame(message: JSONRPCMessage) -> str:
    """The line for a message. What no JSON can hold becomes an error, and never the end of the server.

    Example: `await output.write(written_frame(message))`
    """
    try:
        return _dumped(message)
    except PydanticSerializationError:
        if not isinstance(message, JSONRPCResponse):
            raise
        return _dumped(_error(message.id, INTERNAL_ERROR, "the answer holds what no JSON text can"))


def _dumped(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"


def _refusal(line: str, *, unreadable: bool) -> JSONRPCError | None:
    try:
        content: object = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "the line is no JSON")
    if not isinstance(content, dict):
        return _error(None, INVALID_REQUEST, "a message is one object, and batches are not served")
    members = cast("dict[str, Any]", content)
    if "id" not in members or ("method" not in members and members.keys() & {"result", "error"}):
        return None
    if unreadable:
        return _error(
            _request_id(members), PARSE_ERROR, "the line has a lone surrogate or is nested too deeply"
        )
    return _error(_request_id(members), INVALID_REQUEST, "the message is no request of JSON-RPC 2.0")


def _request_id(members: dict[str, Any]) -> RequestId | None:
    given = members["id"]
    if isinstance(given, str):
        return given if _is_unicode(given) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _error(number: RequestId | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))
