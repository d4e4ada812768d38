"""Secrets are replaced by value, wherever they stand."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxio.errors import ConfigurationError, ConnectError
from sandboxio.redaction import MASK, RedactedError, Redactor, redactor_for


def test_the_longest_of_overlapping_secrets_is_replaced_whole():
    assert Redactor(["abc", "abcdef"]).text("abcdef abc") == f"{MASK} {MASK}"


def test_an_empty_secret_replaces_nothing():
    assert Redactor([""]).text("text") == "text"


def test_a_repr_shows_no_secret():
    assert "abc" not in repr(Redactor(["abc"]))


def test_an_error_is_cleaned_with_its_notes_hint_and_causes():
    redactor = Redactor(["abc"])
    try:
        try:
            raise OSError("abc")
        except OSError as cause:
            cause.add_note("abc")
            raise ConnectError("got abc", hint="remove abc") from cause
    except ConnectError as exc:
        redactor.error(exc)
        assert "abc" not in str(exc)
        assert "abc" not in str(exc.__cause__)
        assert exc.__cause__.__notes__ == [MASK]


def test_an_operating_system_error_is_cleaned_with_its_path():
    error = ConnectError("failed")
    error.__cause__ = FileNotFoundError(2, "No such file", "/work/abc")
    Redactor(["abc"]).error(error)
    assert str(error.__cause__) == f"[Errno 2] No such file: '/work/{MASK}'"


def test_what_cannot_be_cleaned_is_replaced_by_a_stand_in():
    class Stubborn(Exception):
        def __str__(self):
            return "always abc"

    error = ConnectError("failed")
    error.__cause__ = Stubborn()
    Redactor(["abc"]).error(error)
    assert isinstance(error.__cause__, RedactedError)
    assert str(error.__cause__) == "Stubborn"


def test_an_error_that_cannot_even_be_shown_is_replaced_by_a_stand_in():
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    error = ConnectError("failed")
    error.__cause__ = Broken()
    Redactor(["abc"]).error(error)
    assert isinstance(error.__cause__, RedactedError)


def test_a_frozen_error_is_replaced_by_a_stand_in():
    @dataclass(frozen=True)
    class Frozen(Exception):
        text: str

    error = ConnectError("failed")
    error.__cause__ = Frozen("abc")
    Redactor(["abc"]).error(error)
    assert "abc" not in f"{error.__cause__} {error.__cause__!r}"


def test_an_endless_chain_is_cut_where_nobody_has_looked():
    root = error = ConnectError("failed")
    for _ in range(50):
        error.__cause__ = OSError("abc")
        error = error.__cause__
    Redactor(["abc"]).error(root)
    assert "abc" not in "".join(traceback.format_exception(root))


def test_the_members_of_a_group_are_cleaned():
    error = ConnectError("failed")
    error.__cause__ = ExceptionGroup("several", [OSError("abc")])
    Redactor(["abc"]).error(error)
    assert "abc" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("secret", ['it\'s "quoted"', "two\nlines", "tab\there", "ünïcode", "back\\slash"])
def test_a_secret_is_found_where_it_stands_escaped(secret):
    redactor = Redactor([secret])
    assert redactor.text(repr([secret])) in (f"['{MASK}']", f'["{MASK}"]')
    assert redactor.text(json.dumps(secret)) == f'"{MASK}"'


def test_a_secret_that_is_part_of_the_mask_does_not_tear_it():
    assert Redactor(["s3cr3t", "red"]).text("s3cr3t") == MASK


def test_a_chain_that_leads_back_to_itself_ends():
    first, second = ConnectError("abc"), ConnectError("abc")
    first.__context__, second.__context__ = second, first
    Redactor(["abc"]).error(first)
    assert "abc" not in str(second)


@given(
    st.lists(st.text(alphabet="reda[]xy", min_size=1), min_size=1, max_size=4), st.text(alphabet="redaxy[]")
)
def test_no_secret_survives_outside_the_mask(secrets, text):
    cleaned = Redactor(secrets).text(text)
    for rest in cleaned.split(MASK):
        assert not any(secret in rest for secret in secrets)


def test_credentials_that_the_process_holds_for_a_backend_are_known(monkeypatch):
    monkeypatch.setenv("E2B_API_KEY", " e2b_0123456789abcdef ")
    redactor = redactor_for("e2b", {"TOKEN": "t0ken-value"})
    assert redactor.text("Bearer:e2b_0123456789abcdef_x t0ken-value") == "Bearer:[redacted]_x [redacted]"
    assert redactor_for("docker").text("e2b_0123456789abcdef") == "e2b_0123456789abcdef"
    assert redactor_for("acme").text("word") == "word"


def test_a_credential_too_short_to_be_one_masks_no_words(monkeypatch):
    monkeypatch.setenv("E2B_API_KEY", "key")
    assert redactor_for("e2b").text("E2B asks for a key") == "E2B asks for a key"


AWKWARD = "-----BEGIN KEY-----\nMII'x\"y\\z\té\x1b\n-----END KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        AWKWARD,
        repr(AWKWARD),
        json.dumps(AWKWARD),
        json.dumps({AWKWARD: AWKWARD}, ensure_ascii=False),
        ConfigurationError(f"the folder {AWKWARD} is none").message,
        str(FileNotFoundError(2, "No such file or directory", AWKWARD)),
    ],
)
def test_a_secret_is_found_in_every_form(text: str) -> None:
    redacted = Redactor([AWKWARD]).text(text)
    assert "[redacted]" in redacted
    assert "MII" not in redacted
    assert "KEY" not in redacted


def test_a_secret_with_a_quote_is_found_within_a_text_that_has_both_kinds() -> None:
    assert Redactor(["hunt'er2"]).text(repr('no "hunt\'er2" here')) == "'no \"[redacted]\" here'"


def test_a_secret_that_holds_another_is_replaced_as_a_whole() -> None:
    assert Redactor(["hunter", "hunter2"]).text("hunter2 hunter") == "[redacted] [redacted]"


@pytest.mark.parametrize("secret", ["", " ", "\n"])
def test_a_secret_without_content_changes_no_words(secret: str) -> None:
    assert Redactor([secret, "hunter2"]).text("no,hunter2,here") == "no,[redacted],here"
