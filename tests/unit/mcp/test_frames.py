"""Lines of the stdio transport: what is a message, and what is answered where a line is none."""

from __future__ import annotations

import json

import pytest
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from sandboxio.mcp.frames import MalformedFrame, read_frame, written_frame

PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


def refusal(line: str) -> JSONRPCError | None:
    with pytest.raises(MalformedFrame) as raised:
        read_frame(line)
    return raised.value.answer


def test_a_request_is_read() -> None:
    assert read_frame(PING) == JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        ("hello", -32700, None),
        ("[" * 100_000, -32700, None),
        (f'{{"id": {"9" * 5000}}}', -32700, None),
        (r'{"jsonrpc": "2.0", "id": 7, "method": "\ud800"}', -32700, 7),
        (r'{"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}', -32700, None),
        (f'{{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": {"[" * 300 + "]" * 300}}}', -32700, 7),
        (f"[{PING}]", -32600, None),
        ('"ping"', -32600, None),
        ('{"id": 7, "method": "ping"}', -32600, 7),
        ('{"jsonrpc": "1.0", "id": "seven", "method": "ping"}', -32600, "seven"),
        ('{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
        ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": [1]}', -32600, 7),
        ('{"jsonrpc": "2.0", "id": 7}', -32600, 7),
        ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": {}, "method": "ping", "params": 1}', -32600, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_may_await_an_answer_has_one(line: str, code: int, number: int | str | None) -> None:
    answer = refusal(line)
    assert answer is not None
    assert (answer.error.code, answer.id) == (code, number)
    assert json.loads(written_frame(answer))["id"] == number


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 1}',
        '{"jsonrpc": "2.0", "id": 7, "result": 5}',
        '{"jsonrpc": "2.0", "id": 7, "error": "no"}',
    ],
)
def test_a_notification_and_an_answer_are_never_answered(line: str) -> None:
    assert refusal(line) is None


def test_a_message_is_written_on_one_line() -> None:
    line = written_frame(JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "one\ntwo\u2028"}))
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert json.loads(line)["result"] == {"text": "one\ntwo\u2028"}


def test_an_answer_that_no_json_can_hold_becomes_an_error() -> None:
    line = written_frame(JSONRPCResponse(jsonrpc="2.0", id=7, result={"name": "a\udcff"}))
    told = json.loads(line)
    assert (told["id"], told["error"]["code"]) == (7, -32603)
