"""Rules that no linter knows: no handler swallows a cancellation, files stay small, names say something."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted([*(ROOT / "src").rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")])
# It stands between an event loop and what is awaited, and hands on whatever is thrown in.
TRAMPOLINES = {ROOT / "src" / "sandboxio" / "testing" / "suite" / "cancel_points.py"}
LONGEST_FILE = 500
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def swallows_cancellation(source: str) -> list[int]:
    """Return the lines of handlers that a cancellation could end in: those that do not raise it again."""

    def caught(expression: ast.expr | None) -> set[str]:
        if expression is None:
            return {"BaseException"}
        return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}

    def raises_again(handler: ast.ExceptHandler) -> bool:
        last = handler.body[-1]
        return isinstance(last, ast.Raise) and last.exc is None

    handlers = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)]
    return [
        handler.lineno
        for handler in handlers
        if "BaseException" in caught(handler.type) and not raises_again(handler)
    ]


@pytest.mark.parametrize(
    "module", sorted({*MODULES} - TRAMPOLINES), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_handler_swallows_a_cancellation(module: Path) -> None:
    assert swallows_cancellation(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("handler", ["except:", "except BaseException:", "except (OSError, BaseException):"])
@pytest.mark.parametrize("body", ["pass", "raise RuntimeError", "if x: raise"])
def test_a_handler_that_does_is_noticed(handler: str, body: str) -> None:
    assert swallows_cancellation(f"try:\n    pass\n{handler}\n    {body}\n") == [3]


@pytest.mark.parametrize(
    "handler", ["except Exception:\n    pass", "except BaseException:\n    undo()\n    raise"]
)
def test_a_handler_that_does_not_passes(handler: str) -> None:
    assert swallows_cancellation(f"try:\n    pass\n{handler}\n") == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_is_read_in_one_sitting(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_name_says_what_is_inside(module: Path) -> None:
    assert not EMPTY_NAMES & set(module.relative_to(ROOT).with_suffix("").parts)
