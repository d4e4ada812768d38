"""The table of known backends agrees with what the project builds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET, KNOWN_BACKENDS, KnownBackend
from sandboxio.dsn import parse_dsn
from sandboxio.registry import BACKEND_NAME

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
    assert row.install_command == f"uv sync --extra {row.extra}"
    assert row.one_shot_command == f'uvx --from ".[{row.extra}]" sandboxio demo'


def test_the_default_can_be_installed() -> None:
    assert KNOWN_BACKENDS[DEFAULT_BACKEND].install_command
    assert parse_dsn(EXAMPLE_TARGET).backend == DEFAULT_BACKEND
