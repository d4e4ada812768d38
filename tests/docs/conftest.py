"""The documentation's site, built once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Pages that the project's configuration names one by one, so that every site made with it must have them.
NAMES = ("quickstart", "build-order", "open-questions", "churn-log", "hazards", "runbook")
NAMED_PAGES = {f"{name}.md": f"# {name}\n" for name in NAMES} | {"assets/site.css": ""}

BuildPages = Callable[..., "subprocess.CompletedProcess[str]"]


def _build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(configuration)]
    return subprocess.run(
        [*command, "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = _build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def build_pages(tmp_path: Path) -> BuildPages:
    """A function that builds a site of other pages with the project's configuration, into `tmp_path/site`."""

    def build_pages(pages: dict[str, str], more: str = "") -> subprocess.CompletedProcess[str]:
        docs = tmp_path / "docs"
        for name, text in {**NAMED_PAGES, **pages}.items():
            (docs / name).parent.mkdir(parents=True, exist_ok=True)
            (docs / name).write_text(text, encoding="utf-8")
        configuration = tmp_path / "mkdocs.yml"
        (tmp_path / "scripts").symlink_to(ROOT / "scripts")  # where the configuration's hooks are
        lines = [f"INHERIT: {ROOT / 'mkdocs.yml'}", f"docs_dir: {docs}", "nav: [index.md]"]
        configuration.write_text("\n".join([*lines, more, ""]), encoding="utf-8")
        return _build(configuration, tmp_path / "site")

    return build_pages
