"""Results of the code interpreter as outputs, whatever the sandbox makes of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandboxio.models import RichOutput
from sandboxio_e2b.mime import rich_outputs

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


def outputs(**message: Any) -> list[RichOutput]:
    return list(rich_outputs({"type": "result", "is_main_result": True, **message}))


@pytest.mark.parametrize(
    ("key", "mime_type"),
    [
        ("text", "text/plain"),
        ("html", "text/html"),
        ("markdown", "text/markdown"),
        ("svg", "image/svg+xml"),
        ("latex", "text/latex"),
        ("javascript", "application/javascript"),
    ],
)
def test_texts_are_texts(key: str, mime_type: str) -> None:
    assert outputs(**{key: "é <b>1</b>"}) == [RichOutput(mime_type, "é <b>1</b>")]
    assert outputs(**{key: ""}) == [RichOutput(mime_type, "")]


@pytest.mark.parametrize(
    ("key", "mime_type"), [("png", "image/png"), ("jpeg", "image/jpeg"), ("pdf", "application/pdf")]
)
def test_binaries_are_bytes(key: str, mime_type: str) -> None:
    assert outputs(**{key: base64.b64encode(PNG).decode()}) == [RichOutput(mime_type, PNG)]


def test_base64_in_lines_is_read() -> None:
    assert outputs(png=base64.encodebytes(PNG * 20).decode()) == [RichOutput("image/png", PNG * 20)]


@pytest.mark.parametrize(
    ("key", "mime_type"),
    [
        ("json", "application/json"),
        ("data", "application/vnd.e2b.data+json"),
        ("chart", "application/vnd.e2b.chart+json"),
    ],
)
@pytest.mark.parametrize("value", [{"a": [1, None, "é"]}, [], {}, 0, False, "", "text"])
def test_objects_are_json(key: str, mime_type: str, value: Any) -> None:
    (output,) = outputs(**{key: value})
    assert output.mime_type == mime_type
    assert isinstance(output.data, str)
    assert json.loads(output.data) == value


def test_every_representation_comes_the_plain_text_first() -> None:
    found = outputs(extra={"x/y": "z"}, json={}, png=base64.b64encode(PNG).decode(), html="h", text="t")
    assert [output.mime_type for output in found] == [
        "text/plain",
        "text/html",
        "image/png",
        "application/json",
        "x/y",
    ]


def test_other_types_come_under_their_own_name() -> None:
    found = outputs(extra={"application/geo+json": {"a": 1}, "text/x-thing": "plain"})
    assert found == [RichOutput("application/geo+json", '{"a": 1}'), RichOutput("text/x-thing", "plain")]


def test_a_result_without_anything_is_nothing() -> None:
    assert outputs() == []
    assert outputs(text=None, png=None, json=None, extra=None) == []


@pytest.mark.parametrize(
    "message",
    [
        {"text": 1},
        {"html": ["x"]},
        {"svg": {"a": "b"}},
        {"png": 1},
        {"png": "abc"},
        {"jpeg": "é"},
        {"pdf": ["x"]},
        {"extra": "text"},
        {"extra": [1]},
        {"extra": 0},
    ],
)
def test_what_has_not_the_form_that_it_should_have_is_left_out(message: dict[str, Any]) -> None:
    assert outputs(**message, markdown="stays") == [RichOutput("text/markdown", "stays")]


@pytest.mark.parametrize(
    "message",
    [
        {"text": "a\ud800b"},
        {"json": {"a": "\udfff"}},
        {"extra": {"x/\ud800": "v"}},
        {"extra": {"x/y": "\ud800"}},
        {"extra": {"x/y": ["\ud800"]}},
    ],
)
def test_half_a_surrogate_pair_does_not_come_through(message: dict[str, Any]) -> None:
    (output,) = outputs(**message)
    output.mime_type.encode()
    assert isinstance(output.data, str)
    output.data.encode()
