"""A page that moved leaves a redirect, and a table that contradicts the pages fails the build."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]

BuildPages = Callable[..., "subprocess.CompletedProcess[str]"]
PAGES = {"index.md": "# Home\n", "guides/new.md": "# New\n"}


def table_of(old: str, new: str) -> str:
    return f"extra:\n  moved_pages:\n    {old}: {new}\n"


@pytest.mark.parametrize(
    ("old", "new", "place", "address"),
    [
        ("old.md", "guides/new.md", "old/index.html", "../guides/new/"),
        ("how-to/old.md", "guides/new.md", "how-to/old/index.html", "../../guides/new/"),
        ("old/index.md", "index.md", "old/index.html", "../"),
    ],
)
def test_a_moved_page_leads_to_the_new_one(
    old: str, new: str, place: str, address: str, build_pages: BuildPages, tmp_path: Path
) -> None:
    done = build_pages(PAGES, table_of(old, new))
    assert done.returncode == 0, done.stderr
    left = tmp_path / "site" / place
    assert f'content="0; url={address}"' in left.read_text(encoding="utf-8")
    assert (left.parent / address / "index.html").is_file()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("old.md", "gone.md", "does not exist"),
        ("guides/new.md", "index.md", "is still there"),
    ],
)
def test_a_table_that_contradicts_the_pages_fails_the_build(
    old: str, new: str, fault: str, build_pages: BuildPages
) -> None:
    done = build_pages(PAGES, table_of(old, new))
    assert done.returncode != 0
    assert fault in done.stderr


def test_every_moved_page_of_the_site_left_a_redirect(site: Path) -> None:
    configuration = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    for old in configuration["extra"]["moved_pages"]:
        place = site / Path(old).with_suffix("") / "index.html"
        assert "http-equiv" in place.read_text(encoding="utf-8")
