"""The direction of imports is what the architecture says, and the contracts notice a wrong one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = Path("src/sandboxio")
DOCKER = Path("packages/sandboxio-docker/src/sandboxio_docker")
E2B = Path("packages/sandboxio-e2b/src/sandboxio_e2b")
PACKAGES = (CORE, DOCKER, E2B)
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(str(root / package.parent) for package in PACKAGES)
    command = [sys.executable, "-c", LINT, "--no-cache"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A copy of the code and of its contracts, to break one in."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        (CORE / "models.py", "import sandboxio.protocols"),
        (CORE / "errors.py", "import sandboxio.api"),
        (CORE / "protocols.py", "import sandboxio.adapter.sandbox"),
        (CORE / "api.py", "import sandboxio.adapter.sandbox"),
        (CORE / "api.py", "import sandboxio.testing.fake"),
        (CORE / "adapter" / "sandbox.py", "import sandboxio.api"),
        (CORE / "adapter" / "sandbox.py", "import sandboxio.testing"),
        (CORE / "cli" / "__init__.py", "import sandboxio.adapter.sandbox"),
        (CORE / "registry.py", "import sandboxio_docker"),
        (CORE / "registry.py", "import sandboxio_e2b"),
        (DOCKER / "__init__.py", "import sandboxio.api"),
        (DOCKER / "__init__.py", "import sandboxio.testing.fake"),
        (DOCKER / "__init__.py", "import sandboxio_e2b"),
        (E2B / "__init__.py", "import sandboxio.api"),
        (E2B / "__init__.py", "import sandboxio.registry"),
        (E2B / "backend.py", "import sandboxio.testing.fake"),
        (E2B / "backend.py", "import sandboxio_docker"),
    ],
    ids=lambda value: str(value).removeprefix("import "),
)
def test_a_wrong_direction_is_noticed(module: Path, statement: str, planted: Path) -> None:
    with (planted / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{statement}\n")
    done = lint_imports(planted)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
