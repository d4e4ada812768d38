"""The text form of a target."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxio.dsn import MAX_LENGTH, Dsn, parse_dsn
from sandboxio.errors import ConfigurationError

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "backend", "template"),
    [
        ("docker://", "docker", None),
        ("docker://python", "docker", "python"),
        ("docker://python:3.12-slim", "docker", "python:3.12-slim"),
        ("docker://host:5000/img:tag", "docker", "host:5000/img:tag"),
        ("docker://registry.example:5000/team/img", "docker", "registry.example:5000/team/img"),
        ("docker://localhost/img", "docker", "localhost/img"),
        (f"docker://img@{DIGEST}", "docker", f"img@{DIGEST}"),
        (f"docker://python:3.12@{DIGEST}", "docker", f"python:3.12@{DIGEST}"),
        (f"docker://host:5000/a/b:1@{DIGEST}", "docker", f"host:5000/a/b:1@{DIGEST}"),
        (f"docker://{DIGEST}", "docker", DIGEST),
        ("docker://my__img--x", "docker", "my__img--x"),
        ("bwrap:///srv/root", "bwrap", "/srv/root"),
        ("my-own_2://", "my-own_2", None),
        ("docker://100%natural", "docker", "100%natural"),
    ],
)
def test_a_template_comes_through_unchanged(text: str, backend: str, template: str | None) -> None:
    assert parse_dsn(text) == Dsn(backend, template)


@pytest.mark.parametrize(
    ("query", "timeout", "params"),
    [
        ("timeout=60", 60.0, {}),
        ("timeout=2.5", 2.5, {}),
        ("runtime=runsc", None, {"runtime": "runsc"}),
        ("a=1&timeout=60&b=x=y", 60.0, {"a": "1", "b": "x=y"}),
        ("name=a%20b%26c%C3%A9", None, {"name": "a b&cé"}),
        ("name=a+b", None, {"name": "a+b"}),
        ("name=what?", None, {"name": "what?"}),
    ],
)
def test_parameters_are_decoded(query: str, timeout: float | None, params: dict[str, str]) -> None:
    dsn = parse_dsn(f"docker://img?{query}")
    assert (dsn.template, dsn.timeout, dict(dsn.params)) == ("img", timeout, params)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docker",
        "docker:",
        "docker:/img",
        "docker//img",
        "://img",
        "Docker://img",
        "1docker://img",
        "do cker://img",
        "döcker://img",
        " docker://img",
        "docker://img ",
        "docker://img\n",
        "docker://im\tg",
        "docker://im\0g",
        "docker://im\x1b[31mg",
        "docker://im\u200bg",
        "docker://im\u202eg",
        "docker://im\ud800g",
        "docker://img?",
        "docker://img?timeout",
        "docker://img?timeout=",
        "docker://img?=60",
        "docker://img?timeout=60&",
        "docker://img?&timeout=60",
        "docker://img?timeout=0",
        "docker://img?timeout=-1",
        "docker://img?timeout=nan",
        "docker://img?timeout=inf",
        "docker://img?timeout=1e3",
        "docker://img?timeout=60s",
        "docker://img?timeout=٦٠",
        "docker://img?timeout=60&timeout=60",
        "docker://img?a=1&a=2",
        "docker://img?A=1",
        "docker://img?a-b=1",
        "docker://img?a=%zz",
        "docker://img?a=%4",
        "docker://img?a=%ff",
        "docker://img?a=%00",
        "docker://img?a=%0a",
        "docker://" + "a" * MAX_LENGTH,
    ],
)
def test_a_malformed_target_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="malformed") as caught:
        parse_dsn(text)
    assert "<backend>://" in caught.value.hint


SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"docker://user:{SECRET}@registry.example/img",
        f"docker://user:{SECRET}@registry.example/img@{DIGEST}",
        f"docker://:{SECRET}@registry.example/img",
        f"docker://user:{SECRET}@img:tag",
        f"docker://img?token={SECRET}",
        f"docker://img?api_key={SECRET}",
        f"docker://img?apikey={SECRET}",
        f"docker://img?apiKey={SECRET}",
        f"docker://img?API_KEY={SECRET}",
        f"docker://img?password={SECRET}",
        f"docker://img?db_password={SECRET}",
        f"docker://img?client_secret={SECRET}",
        f"docker://img?access-token={SECRET}",
        f"docker://img?x=sk-{SECRET}",
        f"docker://img?x=ghp_{SECRET}",
        f"docker://img?x=e2b_{SECRET}",
        f"docker://img?x=AKIA{SECRET}",
        f"docker://img?x=eyJ{SECRET}",
        f"docker://img?x=%67hp_{SECRET}",
        f"docker://img?x=Abcdefgh1234567890{SECRET}",
        f"docker://img?x=tcp://user:{SECRET}@host",
        "docker://img?x=" + "0123456789abcdef" * 2,
        f"docker://ghp_{SECRET}@ghcr.example/img",
    ],
)
def test_a_credential_is_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError, match="credential") as caught:
        parse_dsn(text)
    assert SECRET not in str(caught.value)
    assert "0123456789abcdef" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("e2b://base?api_key=x", "E2B_API_KEY"),
        ("docker://img?password=x", "DOCKER_CONFIG"),
        ("acme://img?password=x", "environment variable"),
    ],
)
def test_the_fix_names_where_the_credential_belongs(text: str, variable: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_dsn(text)
    assert variable in caught.value.hint


@pytest.mark.parametrize("query", ["keyboard=us", "author=me", "passive=1", "tokenizer=x", "monkey=1"])
def test_an_innocent_name_is_no_credential(query: str) -> None:
    assert parse_dsn(f"docker://img?{query}").params


def test_the_repr_shows_no_value() -> None:
    assert repr(parse_dsn("docker://img?timeout=60&runtime=kata")) == "<Dsn docker://img?timeout=…&runtime=…>"


def test_a_dsn_is_compared_by_value() -> None:
    assert parse_dsn("docker://img?a=1&b=2") == parse_dsn("docker://img?b=2&a=1")
    assert hash(parse_dsn("docker://img?a=1")) == hash(parse_dsn("docker://img?a=1"))


def test_parameters_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        parse_dsn("docker://img?a=1").params["a"] = "2"  # type: ignore[index]


@given(st.text(max_size=80))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        dsn = parse_dsn(text)
    except ConfigurationError as error:
        assert error.code == "SBX_E1000"
    else:
        assert text.startswith(f"{dsn.backend}://{dsn.template or ''}")


@given(
    st.from_regex(re.compile(r"[a-z][a-z0-9_-]{0,10}", re.ASCII), fullmatch=True),
    st.from_regex(re.compile(r"([a-z0-9]{1,8}[./:-]){0,3}[a-z0-9]{0,8}", re.ASCII), fullmatch=True),
    st.dictionaries(
        st.sampled_from(["runtime", "region", "size", "platform"]),
        st.text(st.characters(categories=("Ll", "Nd", "Po", "Sm")), min_size=1, max_size=12),
        max_size=3,
    ),
)
def test_what_is_written_is_what_is_read(backend: str, template: str, params: dict[str, str]) -> None:
    query = "&".join(
        f"{name}=" + "".join(f"%{byte:02X}" for byte in value.encode()) for name, value in params.items()
    )
    text = f"{backend}://{template}" + (f"?{query}" if query else "")
    try:
        dsn = parse_dsn(text)
    except ConfigurationError as error:  # a random value may look like a credential
        assert "credential" in error.message
    else:
        assert dsn == Dsn(backend, template or None, None, params)
