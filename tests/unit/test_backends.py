"""The table of known backends agrees with what the project builds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandboxio.backends import (
    DEFAULT_BACKEND,
    EXAMPLE_TARGET,
    KNOWN_BACKENDS,
    KnownBackend,
    backends_with,
)
from sandboxio.dsn import parse_dsn
from sandboxio.models import Capability
from sandboxio.registry import BACKEND_NAME, backend_class

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("row", KNOWN_BACKENDS.values(), ids=lambda row: row.name)
def test_an_install_command_names_an_extra_that_installs_the_backend(row: KnownBackend) -> None:
    assert BACKEND_NAME.fullmatch(row.name)
    if row.extra is None:
        assert row.name not in EXTRAS
        assert row.install_command is None
        assert row.one_shot_command is None
        return
    assert any(requirement.startswith(f"{row.distribution}==") for requirement in EXTRAS[row.extra])
    assert row.install_command == f"uv sync --inexact --extra {row.extra}"
    assert row.one_shot_command == f'uvx --from ".[{row.extra}]" sandboxio demo'


def test_the_default_can_be_installed() -> None:
    assert KNOWN_BACKENDS[DEFAULT_BACKEND].install_command
    assert parse_dsn(EXAMPLE_TARGET).backend == DEFAULT_BACKEND


@pytest.mark.parametrize(
    "row", [row for row in KNOWN_BACKENDS.values() if row.extra], ids=lambda row: row.name
)
def test_the_table_tells_what_the_adapter_declares(row: KnownBackend) -> None:
    make = backend_class(row.name)
    backend = make(make.config_type.from_dsn(None, {}))
    assert {flag.name for flag in backend.capabilities} == row.capabilities


def test_the_backends_that_have_a_capability_are_named() -> None:
    assert backends_with(Capability.STREAMING) == ("docker", "e2b")
    assert backends_with(Capability.STREAMING | Capability.STATEFUL_CODE) == ("e2b",)
    assert backends_with(Capability.PTY) == ()
    assert backends_with(Capability.STREAMING | Capability.PTY) == ()
