"""Numbers that come from environment variables."""

from __future__ import annotations

import pytest

from sandboxio.environment import seconds_from_environment
from sandboxio.errors import ConfigurationError

VARIABLE = "SBX_TEARDOWN_GRACE"


@pytest.mark.parametrize(("text", "seconds"), [("2", 2.0), ("0.25", 0.25), ("", 5.0)])
def test_a_number_of_seconds_is_read(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert seconds_from_environment(VARIABLE, 5.0) == seconds


def test_an_unset_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert seconds_from_environment(VARIABLE, 5.0) == 5.0


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "5s", "five"])
def test_anything_else_is_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigurationError, match=VARIABLE) as caught:
        seconds_from_environment(VARIABLE, 5.0)
    assert "5" in caught.value.hint
