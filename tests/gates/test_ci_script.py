"""`.ci/run` runs every step, fails if one failed, and ends the engine only if it started it.

The real script runs over stand-ins for the programs it calls; each notes its call and fails when told to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_IN = """#!/bin/sh
call="$(basename "$0") $*"
echo "$call" >> "$CALLS"
case "$call" in $FAILING) exit 1 ;; $ALSO_FAILING) exit 1 ;; esac
"""
ENGINE_SCRIPTS = ("docker-engine.sh", "docker-image.sh", "docker-images-test.sh")
STEPS = ["make setup", "make test", "make demo", "make lint", "make site", "make wheels"]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the script did."""

    returncode: int
    output: str
    calls: list[str]


class Checkout:
    """A folder with the real script and stand-ins for everything that it calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls.txt"
        for name in (
            "docker-engine.sh",
            "docker-image.sh",
            "docker-images-test.sh",
            "test-python314.sh",
            "uv.sh",
        ):
            self.stand_in(folder / "scripts" / name)
        for name in ("make", "docker", "git", "apt-get"):
            self.stand_in(folder / "bin" / name)
        (folder / ".ci").mkdir()
        for name in ("run", "engine.env"):
            shutil.copy(ROOT / ".ci" / name, folder / ".ci" / name)

    def stand_in(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(STAND_IN)
        path.chmod(0o755)

    def run(self, failing: str = "nothing", also_failing: str = "nothing") -> Run:
        environment = dict(os.environ) | {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "FAILING": failing,
            "ALSO_FAILING": also_failing,
        }
        done = subprocess.run(
            ["bash", str(self.folder / ".ci" / "run")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Run(done.returncode, done.stdout + done.stderr, self.calls.read_text().splitlines())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout to run the script in."""
    return Checkout(tmp_path)


def test_all_steps_run_and_pass(checkout: Checkout) -> None:
    run = checkout.run()
    assert run.returncode == 0, run.output
    assert [call for call in run.calls if call in STEPS] == STEPS
    assert any("pytest" in call for call in run.calls)
    assert any("check_leaks.py" in call for call in run.calls)


@pytest.mark.parametrize(
    ("failing", "name"),
    [
        ("make?setup", "environment"),
        ("docker-engine.sh?up*", "engine"),
        ("make?test", "tests"),
        ("make?demo", "demo"),
        ("make?lint", "lint, format, types, import contracts"),
        ("make?site", "documentation"),
        ("make?wheels", "wheels"),
        ("uv.sh*pytest*", "fast tests on Python"),
        ("uv.sh*check_leaks.py*", "nothing is left behind"),
    ],
)
def test_one_failure_fails_the_run_and_is_named(failing: str, name: str, checkout: Checkout) -> None:
    run = checkout.run(failing)
    assert run.returncode == 1
    assert f"=== FAILED: {name}" in run.output


def test_a_failure_does_not_hide_the_steps_after_it(checkout: Checkout) -> None:
    assert [call for call in checkout.run("make?test").calls if call in STEPS] == STEPS


def test_an_engine_that_was_there_stays(checkout: Checkout) -> None:
    assert not [call for call in checkout.run().calls if call.startswith("docker-engine.sh down")]


def test_an_engine_that_the_run_started_is_ended(checkout: Checkout) -> None:
    assert checkout.run("docker?version*").calls[-1] == "docker-engine.sh down"


def test_an_engine_that_the_run_started_is_ended_after_a_failure(checkout: Checkout) -> None:
    run = checkout.run("docker?version*", also_failing="make?test")
    assert run.returncode == 1
    assert run.calls[-1] == "docker-engine.sh down"
