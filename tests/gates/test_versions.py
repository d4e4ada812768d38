"""One version everywhere: the distributions, what they require of each other, and what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sandboxio

ROOT = Path(__file__).parents[2]
PROJECT_FILES = [ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml"))]


def project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def first_party_pins(table: dict[str, Any]) -> list[str]:
    extras = table.get("optional-dependencies", {}).values()
    requirements = [*table["dependencies"], *(line for extra in extras for line in extra)]
    return [line for line in requirements if re.match(r"sandboxio\b", line)]


@pytest.mark.parametrize("path", PROJECT_FILES, ids=lambda path: path.parent.name)
def test_a_distribution_carries_the_version_and_pins_it(path: Path) -> None:
    table = project(path)
    assert table["version"] == sandboxio.__version__
    pins = first_party_pins(table)
    assert pins
    assert all(line.endswith(f"=={sandboxio.__version__}") for line in pins)


def test_every_adapter_is_an_extra() -> None:
    extras = project(PROJECT_FILES[0])["optional-dependencies"]
    for path in PROJECT_FILES[1:]:
        table = project(path)
        short_name = table["name"].removeprefix("sandboxio-")
        assert extras[short_name] == [f"{table['name']}=={table['version']}"]
