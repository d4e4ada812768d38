"""Every error code has a page, every page a code, and each page says what the catalog says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxio import errors
from sandboxio.error_catalog import CATALOG

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "gen_error_catalog.py"
NEW_CODE = """
import runpy, sys
from sandboxio import errors

class Uncatalogued(errors.SandboxError):
    code = "SBX_E9999"

errors.Uncatalogued = Uncatalogued
errors.__all__ += ["Uncatalogued"]
sys.argv = [{script!r}, "--check"]
runpy.run_path({script!r}, run_name="__main__")
"""


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder of freshly written pages."""
    done = generate("--pages", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


def test_the_pages_are_those_of_the_catalog() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stdout


def test_fresh_pages_pass(pages: Path) -> None:
    assert generate("--check", "--pages", str(pages)).returncode == 0


def test_a_code_without_a_page_is_noticed(pages: Path) -> None:
    (pages / "SBX_E1302.md").unlink()
    done = generate("--check", "--pages", str(pages))
    assert done.returncode == 1
    assert "SBX_E1302.md is missing" in done.stdout


def test_a_page_without_a_code_is_noticed_and_removed(pages: Path) -> None:
    (pages / "SBX_E9999.md").write_text("# SBX_E9999\n")
    done = generate("--check", "--pages", str(pages))
    assert done.returncode == 1
    assert "SBX_E9999.md belongs to no code" in done.stdout
    generate("--pages", str(pages))
    assert not (pages / "SBX_E9999.md").exists()


def test_a_stale_page_is_noticed(pages: Path) -> None:
    with (pages / "SBX_E1000.md").open("a") as file:
        file.write("edited by hand\n")
    done = generate("--check", "--pages", str(pages))
    assert done.returncode == 1
    assert "SBX_E1000.md is stale" in done.stdout


def test_an_error_that_is_not_in_the_catalog_is_noticed() -> None:
    program = NEW_CODE.format(script=str(SCRIPT))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "SBX_E9999 is raised by Uncatalogued and not in the catalog" in done.stdout


def test_no_two_errors_share_a_code() -> None:
    exported = [getattr(errors, name) for name in errors.__all__]
    codes = [cls.code for cls in exported if issubclass(cls, errors.SandboxError) and cls.code]
    assert len(codes) == len(set(codes)) == len(CATALOG)


@pytest.mark.parametrize("code", sorted(CATALOG))
def test_an_entry_says_what_why_and_how_to_fix_it(code: str) -> None:
    entry = CATALOG[code]
    assert re.fullmatch(r"SBX_E\d{4}", code)
    for text in (entry.title, entry.meaning, *entry.causes, *entry.fixes):
        assert len(text.split()) >= 2
    assert entry.causes
    assert entry.fixes
