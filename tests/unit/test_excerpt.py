"""What is too long to be shown whole is shown by its beginning and its end."""

from __future__ import annotations

import pytest

from sandboxio.excerpt import excerpt


@pytest.mark.parametrize("text", ["", "abcdef"])
def test_a_text_that_fits_is_whole(text: str) -> None:
    assert excerpt(text, 6) == text


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (1, "\n[6 characters left out]\ng"),
        (4, "ab\n[3 characters left out]\nfg"),
        (5, "ab\n[2 characters left out]\nefg"),
    ],
)
def test_of_a_longer_one_as_many_characters_are_kept_as_the_limit_says(limit: int, shown: str) -> None:
    assert excerpt("abcdefg", limit) == shown


def test_the_line_in_the_middle_says_what_to_do() -> None:
    assert excerpt("abcdefg", 2, advice="; print less") == "a\n[5 characters left out; print less]\ng"
