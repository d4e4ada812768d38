"""What can be set, what is refused, and what shows that a sandbox was loosened."""

from __future__ import annotations

from typing import Any

import pytest

from sandboxio.errors import ConfigurationError
from sandboxio_docker import DockerConfig


def test_the_defaults_loosen_nothing() -> None:
    assert DockerConfig().loosened == ()
    assert repr(DockerConfig()) == "DockerConfig()"


@pytest.mark.parametrize(
    ("switch", "shown"),
    [
        ({"user": "0"}, "user=0"),
        ({"read_only_root": False}, "read_only_root=False"),
        ({"capabilities": ("NET_RAW",)}, "capabilities=NET_RAW"),
        ({"no_new_privileges": False}, "no_new_privileges=False"),
        ({"seccomp": "{}"}, "seccomp=<custom>"),
    ],
)
def test_every_loosening_is_visible(switch: dict[str, Any], shown: str) -> None:
    config = DockerConfig(**switch)
    assert config.loosened == (shown,)
    assert next(iter(switch)) in repr(config)


@pytest.mark.parametrize(
    "values",
    [
        {"seccomp": "unconfined"},
        {"capabilities": ("ALL",)},
        {"capabilities": ("sys admin",)},
        {"pids_limit": 0},
        {"pids_limit": -1},
        {"pids_limit": True},
        {"user": "root"},
        {"user": "-1"},
        {"create_timeout": 0.0},
        {"create_timeout": float("inf")},
        {"base_url": "unix:///x", "context": "y"},
    ],
)
def test_what_would_switch_a_protection_off_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        DockerConfig(**values)


def test_a_dsn_chooses_image_runtime_and_engine() -> None:
    config = DockerConfig.from_dsn("alpine:3", {"runtime": "runsc", "pids_limit": "99", "context": "away"})
    assert config == DockerConfig(template="alpine:3", runtime="runsc", pids_limit=99, context="away")


@pytest.mark.parametrize("name", ["read_only_root", "user", "seccomp", "nonsense"])
def test_a_dsn_loosens_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        DockerConfig.from_dsn(None, {name: "1"})


def test_a_cap_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="pids_limit"):
        DockerConfig.from_dsn(None, {"pids_limit": "many"})


def test_a_password_in_the_engines_address_is_not_shown() -> None:
    config = DockerConfig(base_url="tcp://user:s3cr3tpw@127.0.0.1:1")
    assert repr(config) == "DockerConfig(base_url='tcp://127.0.0.1:1')"
    assert "ssh://me@build" in repr(DockerConfig(base_url="ssh://me@build"))
