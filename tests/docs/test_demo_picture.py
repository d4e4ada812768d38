"""The picture of the demo is drawn from what the demo prints, and from nothing else."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "demo_picture.py"
PICTURE = ROOT / "docs" / "assets" / "demo.svg"
STEPS = ("create", "run", "stream", "egress", "teardown")


def draw(backend: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--backend", backend, "--file", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def lines_of(picture: Path) -> str:
    root = ET.parse(picture).getroot()
    return " ".join(part.replace("\N{NO-BREAK SPACE}", " ") for part in root.itertext())


def test_the_picture_of_the_readme_shows_every_step_on_a_real_engine() -> None:
    shown = lines_of(PICTURE)
    assert all(step in shown for step in STEPS)
    assert "docker://" in shown
    assert "failed" not in shown


def test_a_picture_shows_what_the_demo_printed(tmp_path: Path) -> None:
    done = draw("fake://", tmp_path / "demo.svg")
    assert done.returncode == 0, done.stderr
    shown = lines_of(tmp_path / "demo.svg")
    assert all(step in shown for step in STEPS)
    assert "fake" in shown


def test_a_demo_that_fails_draws_nothing(tmp_path: Path) -> None:
    done = draw("no-such-backend://", tmp_path / "demo.svg")
    assert done.returncode != 0
    assert "SBX_E1001" in done.stderr
    assert not (tmp_path / "demo.svg").exists()
