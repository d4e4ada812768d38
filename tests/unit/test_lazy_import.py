"""Importing the package loads nothing, and every public name is there when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sandboxio

SOURCE = Path(sandboxio.__file__)


def in_a_fresh_interpreter(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_loads_one_module() -> None:
    program = (
        "import sys\nbefore = set(sys.modules)\nimport sandboxio\nprint(sorted(set(sys.modules) - before))"
    )
    assert in_a_fresh_interpreter(program) == "['sandboxio']\n"


@pytest.mark.parametrize("name", sandboxio.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(sandboxio, name)
    assert getattr(sandboxio, name) is value


def test_all_names_are_sorted_and_unique() -> None:
    assert len(set(sandboxio.__all__)) == len(sandboxio.__all__)
    assert set(sandboxio.__all__) <= set(dir(sandboxio))


def test_a_type_checker_sees_exactly_the_public_names() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names if node.module != "typing"}
    assert set(seen) == set(sandboxio.__all__)
    for name, module in seen.items():
        assert getattr(import_module(str(module)), name) is getattr(sandboxio, name)


@pytest.mark.parametrize("module", ["errors", "models", "network", "protocols"])
def test_what_a_module_exports_is_public(module: str) -> None:
    assert set(import_module(f"sandboxio.{module}").__all__) <= set(sandboxio.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        sandboxio.no_such_name  # noqa: B018


def test_a_public_function_is_never_hidden_by_a_module() -> None:
    program = (
        "import sandboxio.diagnosis, sandboxio.api, sandboxio.sync, sandboxio\n"
        "print(callable(sandboxio.doctor), callable(sandboxio.create), callable(sandboxio.connect_sync))"
    )
    assert in_a_fresh_interpreter(program) == "True True True\n"


def test_logging_is_not_loaded_and_not_configured() -> None:
    program = (
        "import sys, sandboxio.errors, sandboxio.models\n"
        "assert 'logging' not in sys.modules\n"
        "from sandboxio.logs import get_logger\n"
        "import logging\n"
        "get_logger('sandboxio.audit').warning('nobody asked for this')\n"
        "get_logger()\n"
        "root = logging.getLogger('sandboxio')\n"
        "print([type(handler).__name__ for handler in root.handlers], root.level, logging.root.handlers)"
    )
    assert in_a_fresh_interpreter(program) == "['NullHandler'] 0 []\n"


def test_debugging_raises_the_verbosity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_DEBUG", "1")
    program = (
        "import logging\nfrom sandboxio.logs import get_logger\n"
        "print(logging.getLevelName(get_logger().level))"
    )
    assert in_a_fresh_interpreter(program) == "DEBUG\n"
