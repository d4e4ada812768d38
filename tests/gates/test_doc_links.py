"""Every relative link and heading anchor of the documentation resolves, and none leaves `docs/`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "check_doc_links.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A small checkout with two pages that a link can go between."""
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n## What it does\n\n## What it does\n")
    (tmp_path / "docs" / "guide" / "start.md").write_text("# Start\n")
    (tmp_path / "README.md").write_text("# Read me\n")
    return tmp_path


def test_all_links_of_the_documentation_hold() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "link",
    [
        "[home](../index.md)",
        "[section](../index.md#what-it-does)",
        "[its repetition](../index.md#what-it-does_1)",
        "[here](#start)",
        "[elsewhere](https://example.com/none#x)",
        "`[code](none.md)`",
        "```\n[code](none.md)\n```",
    ],
)
def test_a_link_that_holds_passes(link: str, site: Path) -> None:
    (site / "docs" / "guide" / "start.md").write_text(f"# Start\n\n{link}\n")
    done = check(site)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("[gone](gone.md)", "does not exist"),
        ("[gone]\n\n[gone]: gone.md", "does not exist"),
        ("![picture](gone.png)", "does not exist"),
        ("[no such section](../index.md#nothing)", "has no heading #nothing"),
        ("[no such section](#nothing)", "has no heading #nothing"),
        ("[out](../../README.md)", "leaves docs/"),
        ("[absolute](/index.md)", "is absolute"),
    ],
)
def test_a_broken_link_fails(link: str, reason: str, site: Path) -> None:
    (site / "docs" / "guide" / "start.md").write_text(f"# Start\n\n{link}\n")
    done = check(site)
    assert done.returncode == 1
    assert reason in done.stdout


def test_the_readme_may_link_into_the_checkout(site: Path) -> None:
    (site / "README.md").write_text("[docs](docs/index.md#what-it-does)\n")
    assert check(site).returncode == 0
