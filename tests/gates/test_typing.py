"""The library and its adapters are clean under mypy and pyright, both strict, and both notice a fault."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = {
    "wrong.py": "def double(number: int) -> str:\n    return number * 2\n",
    "untyped.py": "def double(number):\n    return number * 2\n",
}
PACKAGES = [
    "src/sandboxio",
    "packages/sandboxio-docker/src/sandboxio_docker",
    "packages/sandboxio-e2b/src/sandboxio_e2b",
]

Checker = Callable[[Path], subprocess.CompletedProcess[str]]


def mypy(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--no-color-output"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)


def pyright(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the project's own type-checker settings and clean packages."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "stubs", tmp_path / "stubs")
    for folder in [*PACKAGES, "scripts"]:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "clean.py").write_text('"""Nothing wrong here."""\n')
    return tmp_path


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_the_code_is_clean(checker: Checker) -> None:
    done = checker(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_faults_are_noticed_in_every_package(checker: Checker, checkout: Path) -> None:
    planted = [f"{folder}/{name}" for folder in PACKAGES for name in FAULTS]
    for path in planted:
        (checkout / path).write_text(FAULTS[Path(path).name])
    done = checker(checkout)
    assert done.returncode == 1
    assert [path for path in planted if path not in done.stdout] == []


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_clean_checkout_passes(checker: Checker, checkout: Path) -> None:
    assert checker(checkout).returncode == 0
