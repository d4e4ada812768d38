"""What can be set, in code and in a DSN, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from sandboxio.errors import ConfigurationError
from sandboxio_e2b import E2BBackend, E2BConfig


def test_the_defaults_show_nothing() -> None:
    assert repr(E2BConfig()) == "E2BConfig()"
    assert E2BConfig.backend_name == "e2b"


def test_what_makes_a_sandbox_less_confined_is_visible() -> None:
    assert E2BConfig().loosened == ()
    config = E2BConfig(allow_dns=True)
    assert config.loosened == ("allow_dns=True",)
    assert repr(config) == "E2BConfig(allow_dns=True)"


def test_what_was_set_is_shown() -> None:
    config = E2BConfig(template="mine", domain="e2b.example.org", create_timeout=5.0)
    assert repr(config) == "E2BConfig(template='mine', domain='e2b.example.org', create_timeout=5.0)"
    assert repr(E2BBackend(config)) == f"E2BBackend({config!r})"


def test_no_key_can_be_put_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "e2b_5ec7e7")
    assert "5ec7e7" not in repr(E2BBackend())
    with pytest.raises(TypeError):
        E2BConfig(api_key="e2b_5ec7e7")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "values",
    [
        {"create_timeout": 0},
        {"create_timeout": -1.0},
        {"create_timeout": float("inf")},
        {"create_timeout": float("nan")},
        {"domain": ""},
        {"domain": "localhost"},
        {"domain": "https://e2b.example.org"},
        {"domain": "e2b.example.org/path"},
        {"domain": "e2b.example.org:443"},
        {"domain": "user@example.org"},
        {"domain": "e2b..org"},
        {"domain": "-e2b.org"},
        {"domain": "e2b.example.org\n"},
        {"domain": "bücher.example"},
    ],
)
def test_a_value_without_a_meaning_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(values))) as caught:
        E2BConfig(**values)
    assert caught.value.hint


def test_a_dsn_names_the_template_and_the_domain() -> None:
    assert E2BConfig.from_dsn(None, {}) == E2BConfig()
    assert E2BConfig.from_dsn("mine", {"domain": "e2b.example.org"}) == E2BConfig(
        template="mine", domain="e2b.example.org"
    )


@pytest.mark.parametrize("name", ["api_key", "allow_dns", "create_timeout", "template", "nonsense"])
def test_a_dsn_takes_nothing_else(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        E2BConfig.from_dsn(None, {name: "1"})


def test_a_dsn_never_repeats_a_value_that_it_refuses() -> None:
    with pytest.raises(ConfigurationError) as caught:
        E2BConfig.from_dsn(None, {"api_key": "5ec7e7"})
    assert "5ec7e7" not in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        E2BConfig.from_dsn(None, {"domain": "5ec7e7@example.org"})
    assert "5ec7e7" not in str(caught.value)
