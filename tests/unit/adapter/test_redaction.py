"""Secrets are replaced by value, wherever they stand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandboxio.adapter.redaction import MASK, Redactor
from sandboxio.errors import ConnectError


def test_the_longest_of_overlapping_secrets_is_replaced_whole():
    assert Redactor({"A": "abc", "B": "abcdef"}).text("abcdef abc") == f"{MASK} {MASK}"


def test_an_empty_secret_replaces_nothing():
    assert Redactor({"A": ""}).text("text") == "text"


def test_a_repr_shows_no_secret():
    assert "abc" not in repr(Redactor({"A": "abc"}))


def test_an_error_is_cleaned_with_its_notes_hint_and_causes():
    redactor = Redactor({"A": "abc"})
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
    Redactor({"A": "abc"}).error(error)
    assert str(error.__cause__) == f"[Errno 2] No such file: '/work/{MASK}'"


def test_what_cannot_be_cleaned_is_replaced_by_a_stand_in():
    class Stubborn(Exception):
        def __str__(self):
            return "always abc"

    error = ConnectError("failed")
    error.__cause__ = Stubborn()
    Redactor({"A": "abc"}).error(error)
    assert str(error.__cause__) == f"Stubborn: always {MASK}"


def test_a_chain_that_leads_back_to_itself_ends():
    first, second = ConnectError("abc"), ConnectError("abc")
    first.__context__, second.__context__ = second, first
    Redactor({"A": "abc"}).error(first)
    assert "abc" not in str(second)


@given(st.text(alphabet="xyz", min_size=1), st.text(alphabet="abxyz"))
def test_no_secret_survives(secret, text):
    assert secret not in Redactor({"S": secret}).text(text)
