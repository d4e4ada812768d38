"""The code interpreter's lines, in whatever pieces they come and however long they are."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxio_e2b import messages
from sandboxio_e2b.messages import TOO_LONG, read_messages

Message = Mapping[str, Any]


def read(pieces: Iterable[bytes]) -> list[Message]:
    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def collect() -> list[Message]:
        return [message async for message in read_messages(source())]

    return asyncio.run(collect())


def line(message: object, *, ascii_only: bool = True) -> bytes:
    return json.dumps(message, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") + b"\n"


def single_bytes(data: bytes) -> list[bytes]:
    return [data[n : n + 1] for n in range(len(data))]


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lines may have 64 bytes."""
    monkeypatch.setattr(messages, "LINE_LIMIT_BYTES", 64)
    return 64


@given(
    st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3)),
    st.lists(st.integers(0, 500)),
    st.booleans(),
)
def test_lines_may_be_cut_anywhere(expected: list[dict[str, Any]], cuts: list[int], ascii_only: bool) -> None:
    data = b"".join(line(message, ascii_only=ascii_only) for message in expected)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    assert read(data[begin:end] for begin, end in pairwise(edges)) == expected


def test_empty_lines_are_nothing_and_the_last_line_needs_no_end() -> None:
    assert read([b'\n\r\n {"a": 1} \r\n\n{"b": 2}']) == [{"a": 1}, {"b": 2}]
    assert read([]) == []


@pytest.mark.parametrize(
    "bad",
    [
        b"no json\n",
        b'{"a": \n',
        b"[]\n",
        b"1\n",
        b"null\n",
        b'"text"\n',
        b'{"type": "stdo',
        b'{"text": "\xff"}\n',
        b'{"a": ' + b"[" * 100_000 + b"\n",
        b'{"a": ' + b"1" * 5000 + b"}\n",
    ],
    ids=lambda bad: repr(bad[:20]),
)
def test_what_is_no_json_object_is_refused(bad: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        read([b'{"a": 1}\n' + bad])


def test_messages_before_a_bad_line_come_first() -> None:
    async def collect() -> list[Message]:
        async def source() -> AsyncIterator[bytes]:
            yield b'{"a": 1}\nbad\n'

        found: list[Message] = []
        with pytest.raises(json.JSONDecodeError):
            async for message in read_messages(source()):
                found.append(message)  # noqa: PERF401 -- it ends with an error
        return found

    assert asyncio.run(collect()) == [{"a": 1}]


@pytest.mark.usefixtures("short_lines")
class TestALineThatIsTooLong:
    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_of_a_text_its_beginning_comes(self, stream: str) -> None:
        data = line({"type": stream, "text": "x" * 500}) + line({"type": "end_of_execution"})
        beginning, rest, last = read(single_bytes(data))
        assert beginning["type"] == stream
        assert set(beginning["text"]) == {"x"}
        assert rest is TOO_LONG
        assert last == {"type": "end_of_execution"}

    def test_of_anything_else_nothing_comes(self) -> None:
        data = line({"type": "result", "text": "x" * 500}) + line({"type": "end_of_execution"})
        assert read(single_bytes(data)) == [TOO_LONG, {"type": "end_of_execution"}]

    def test_it_is_said_once(self) -> None:
        assert read(single_bytes(line({"type": "result", "text": "x" * 5000}))) == [TOO_LONG]
        assert read(single_bytes(line({"type": "result", "text": "x" * 5000})[:-1])) == [TOO_LONG]

    def test_one_that_is_just_short_enough_is_whole(self, short_lines: int) -> None:
        message = {"type": "stdout", "text": ""}
        message["text"] = "x" * (short_lines - len(line(message)) + 1)
        data = line(message)
        assert len(data.rstrip()) == short_lines
        assert read(single_bytes(data)) == [message]

    @pytest.mark.parametrize("unit", ["\\", '"', "\n", "\x00", "é", "中", "🙂", "\\n", 'a"', "ab\\"])
    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_it_may_be_cut_inside_a_character(self, unit: str, ascii_only: bool) -> None:
        for padding in range(14):  # moves the cut over every place in a unit
            text = "." * padding + unit * 100
            data = line({"type": "stdout", "text": text}, ascii_only=ascii_only)
            beginning, rest = read(single_bytes(data))
            assert rest is TOO_LONG
            assert text.startswith(beginning["text"])
            beginning["text"].encode()  # no half of a surrogate pair is left
            kept = len(line({"type": "stdout", "text": beginning["text"]}, ascii_only=ascii_only)) - 3
            assert kept >= 65 - 12  # nothing but the character that was cut is missing

    def test_half_surrogate_pairs_are_left_out(self) -> None:
        beginning, rest = read(single_bytes(line({"type": "stdout", "text": "a\ud83db\udc00c" * 100})))
        assert rest is TOO_LONG
        assert beginning["text"].startswith("abc")
        assert set(beginning["text"]) == {"a", "b", "c"}

    @pytest.mark.parametrize("backslashes", range(190, 210))
    def test_it_may_be_cut_behind_many_backslashes(
        self, backslashes: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        head = b'{"type": "stdout", "text": "'
        monkeypatch.setattr(messages, "LINE_LIMIT_BYTES", len(head) + backslashes - 1)
        beginning, rest = read([head + b"\\" * backslashes, b"\\" * 300 + b'"}\n'])
        assert rest is TOO_LONG
        assert beginning["text"] == "\\" * (backslashes // 2)

    def test_the_text_may_have_ended_before_the_cut(self, short_lines: int) -> None:
        text = "x" * (short_lines - len(line({"type": "stdout", "text": ""})))
        data = line({"type": "stdout", "text": text, "timestamp": "2030-01-01T00:00:00"})
        beginning, rest = read(single_bytes(data))
        assert rest is TOO_LONG
        assert beginning["text"] == text

    def test_a_byte_that_is_no_utf_8_costs_no_more_than_itself(self) -> None:
        beginning, rest = read([b'{"type": "stdout", "text": "' + b"a\xff\xfeb" * 50, b'"}\n'])
        assert rest is TOO_LONG
        assert set(beginning["text"]) == {"a", "b"}


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LINE_LIMIT_BYTES", 2**20)
    chunk = b"x" * 2**16

    def endless() -> Iterable[bytes]:
        yield b'{"type": "result", "text": "'
        for _ in range(2**10):
            yield chunk

    tracemalloc.start()
    try:
        assert read(endless()) == [TOO_LONG]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20  # of 64 MiB


BOMB_BYTES = 8 * 2**20


def in_a_result(value: bytes) -> bytes:
    return b'{"type": "result", "json": ' + value + b"}\n"


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" + b"[]," * (BOMB_BYTES // 3) + b"[]]",
        b"[" + b"{}," * (BOMB_BYTES // 3) + b"{}]",
        b"[" + b"1," * (BOMB_BYTES // 2) + b"1]",
        b"[" * (BOMB_BYTES // 2) + b"]" * (BOMB_BYTES // 2),
        b"{" + b'"":0,' * (BOMB_BYTES // 5) + b'"":0}',
    ],
    ids=["lists", "objects", "numbers", "depth", "keys"],
)
def test_what_would_cost_seconds_and_memory_to_parse_is_too_long(bomb: bytes) -> None:
    data = in_a_result(bomb) + line({"type": "end_of_execution"})
    tracemalloc.start()
    try:
        begun = time.process_time()
        assert read([data]) == [TOO_LONG, {"type": "end_of_execution"}]
        spent = time.process_time() - begun
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert spent < 0.5
    assert peak < 5 * BOMB_BYTES


@pytest.mark.parametrize("content", [b"\0", b"\xff", b"[{,", b"\xd7]u"], ids=str)
def test_a_large_image_is_whole(content: bytes) -> None:
    png = base64.b64encode(content * (BOMB_BYTES // len(content))).decode()
    message = {"type": "result", "is_main_result": True, "png": png, "text": "<Figure>"}
    assert read([line(message)]) == [message]


def test_a_large_text_is_whole_whatever_stands_in_it() -> None:
    message = {"type": "stdout", "text": "[{,}]" * (BOMB_BYTES // 5)}
    assert read([line(message)]) == [message]


def test_a_large_table_of_values_is_whole() -> None:
    message = {"type": "result", "data": {"column": [[n, n / 7] for n in range(20_000)]}}
    assert read([line(message)]) == [message]
