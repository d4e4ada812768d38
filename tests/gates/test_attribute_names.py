"""The names of attributes and spans stand in one file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sandboxio"
ATTRIBUTE = re.compile(r"gen_ai\.[a-z_.]+|error\.type|execute_tool\b.*|sandboxio\.[a-z_0-9.]+")


def attribute_names(source: str) -> set[str]:
    """Return the strings of a module that are names of attributes or of spans."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and ATTRIBUTE.fullmatch(text)}


OURS = attribute_names((SOURCE / "otel.py").read_text(encoding="utf-8"))
MODULES = sorted({*SOURCE.rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")} - {SOURCE / "otel.py"})


def strays(source: str) -> set[str]:
    """Return the names that belong into the one file; any name of the conventions does."""
    return {name for name in attribute_names(source) if name in OURS or not name.startswith("sandboxio.")}


def test_the_names_are_where_they_are_looked_for():
    assert {"gen_ai.tool.name", "error.type", "sandboxio.exit_code"} <= OURS


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_of_attributes_stand_in_one_file(module: Path):
    assert strays(module.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "name", ["gen_ai.tool.name", "error.type", "sandboxio.exit_code", "execute_tool run"]
)
def test_a_stray_name_is_noticed(name: str):
    assert strays(f"span.set_attribute({name!r}, value)") == {name}
