"""`make demo` without an engine says which command is missing and fails; the fake never stands in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "demo.py"


def test_without_an_engine_the_missing_command_is_named(tmp_path: Path) -> None:
    environment = {
        "DOCKER_HOST": f"unix://{tmp_path}/no-engine.sock",
        "HOME": str(tmp_path),
        "PATH": str(tmp_path),  # no apt-get, so nothing can be installed
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    first, command = done.stdout.splitlines()
    assert first == "demo: no Docker Engine answers. Start one, then run this again:"
    assert command.strip()
