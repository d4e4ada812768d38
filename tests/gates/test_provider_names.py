"""No module of core names a provider: what core knows of them is data, in one table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "sandboxio"
TABLE = CORE / "backends.py"
PROVIDERS = re.compile(r"docker|e2b|modal|daytona|vercel|kubernetes|bubblewrap|bwrap", re.IGNORECASE)


def docstrings(tree: ast.Module) -> set[int]:
    """Return the identities of the nodes that are documentation, where an example may name a provider."""
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            statements = [item for item in body if isinstance(item, ast.Expr)]
            found.update(id(item.value) for item in statements if isinstance(item.value, ast.Constant))
    return found


def names_and_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every identifier and every string of a module's code."""
    documentation = docstrings(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield line, text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
            case ast.ImportFrom(module=str(name)):
                yield line, name
            case _:
                pass


def provider_names(source: str) -> list[tuple[int, str]]:
    return [(line, text) for line, text in names_and_strings(ast.parse(source)) if PROVIDERS.search(text)]


MODULES = sorted(path for path in CORE.rglob("*.py") if path != TABLE)


def test_the_table_of_known_backends_is_where_it_is_looked_for() -> None:
    assert provider_names(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(CORE).as_posix())
def test_a_module_of_core_names_no_provider(module: Path) -> None:
    assert provider_names(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import sandboxio_docker",
        "from docker import client",
        "if backend == 'e2b': pass",
        "def make_docker_client(): pass",
        "hint = f'start {x} the Docker engine'",
        "config.daytona_key = 1",
    ],
)
def test_a_provider_in_code_is_noticed(source: str) -> None:
    assert provider_names(source)


def test_an_example_in_a_docstring_may_name_one() -> None:
    assert provider_names('"""Uses `docker://python`."""\n') == []
