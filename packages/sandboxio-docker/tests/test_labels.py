"""Whoever reaches the engine can write labels; none of them makes the rest unreadable."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sandboxio_docker.labels import expiry, lifetime, metadata, whole

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "NaN", "inf", "-inf", "1e400", "99999999999999999999", "-99999999999999999999", "[]", "0", "x\x1b"],
)
def test_a_lifetime_that_cannot_be_read_is_no_expiry(text: str) -> None:
    assert expiry({"sandboxio.lifetime": text}, NOW) is None


def test_a_lifetime_ends_where_it_says() -> None:
    assert lifetime({"sandboxio.lifetime": "90.5"}) == 90.5
    assert expiry({"sandboxio.lifetime": "60"}, NOW) == NOW.replace(minute=1)


@pytest.mark.parametrize("text", ["5", "null", "{", "[" * 100_000, '"a"', '{"a": 1}', "[[], 5, null]", ""])
def test_metadata_that_is_no_list_of_names_is_left_out(text: str) -> None:
    assert metadata({"sandboxio.metadata": text, "a": "b"}) == {}


def test_metadata_are_the_labels_that_it_names() -> None:
    labels = {"sandboxio.metadata": '["a", "missing", 5]', "a": "b", "other": "c"}
    assert metadata(labels) == {"a": "b"}


@pytest.mark.parametrize("text", [None, "", "0", "-1", "1.5", "9" * 5000, "\u0663"])
def test_what_is_no_positive_number_is_none(text: str | None) -> None:
    assert whole(text) is None
