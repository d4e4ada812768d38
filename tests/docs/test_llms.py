"""The files for models hold every page, and a page that falls through is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_llms.py"

INDEX = "# Site\n\n## Guides\n\n- [Home](https://docs.example.org/index.md)\n"
FULL = "# Site\n\n# Home\n\nHello.\n"


def check(*arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_files_for_models_hold_every_page(site: Path) -> None:
    done = check(site)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("site/llms.txt", INDEX, None),
        ("site/llms.txt", "# Site\n", "llms.txt lacks index.md"),
        ("site/llms.txt", f"{INDEX}- [Gone](https://docs.example.org/gone/index.md)\n", "gone/index.md"),
        ("site/llms-full.txt", "# Site\n", "llms-full.txt lacks index.md"),
        ("docs/more.md", "# More\n", "llms.txt lacks more.md"),
        ("docs/index.md", "Hello.\n", "index.md has no title"),
    ],
    ids=["nothing", "an empty index", "a dead entry", "an empty text", "a page left out", "no title"],
)
def test_what_is_missing_is_noticed(file: str, text: str, fault: str | None, tmp_path: Path) -> None:
    good = {
        "site/llms.txt": INDEX,
        "site/llms-full.txt": FULL,
        "site/index.md": FULL,
        "docs/index.md": "# Home\n",
    }
    for name, content in {**good, file: text}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    done = check(tmp_path / "site", tmp_path / "docs")
    assert done.returncode == (0 if fault is None else 1)
    assert (fault or "0 faults") in done.stdout
