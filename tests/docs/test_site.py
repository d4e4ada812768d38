"""The site builds strictly, has each error's page where the error points, and a fault fails the build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sandboxio import errors

ROOT = Path(__file__).parents[2]


def build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(configuration)]
    return subprocess.run(
        [*command, "--site-dir", str(site)], cwd=ROOT, capture_output=True, text=True, timeout=180
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def concrete_errors() -> list[type[errors.SandboxError]]:
    classes = [getattr(errors, name) for name in errors.__all__]
    return [cls for cls in classes if issubclass(cls, errors.SandboxError) and cls.code]


@pytest.mark.parametrize("error", concrete_errors(), ids=lambda cls: cls.__name__)
def test_the_url_of_an_error_is_a_page_of_the_site(error: type[errors.SandboxError], site: Path) -> None:
    path = urlsplit(error("something happened").url).path
    assert (site / path.strip("/") / "index.html").is_file()


@pytest.mark.parametrize(
    "fault",
    ["[gone](gone.md)", "[no heading](index.md#nothing)", "::: sandboxio.no_such_name"],
    ids=["link", "anchor", "reference"],
)
def test_a_fault_fails_the_build(fault: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Home\n\n{fault}\n")
    configuration = tmp_path / "mkdocs.yml"
    configuration.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {docs}\nnav: [index.md]\n")
    done = build(configuration, tmp_path / "site")
    assert done.returncode != 0
    assert "WARNING" in done.stderr or "ERROR" in done.stderr


def test_a_page_without_a_fault_builds(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[here](#home)\n\n::: sandboxio.errors.SandboxGone\n")
    configuration = tmp_path / "mkdocs.yml"
    configuration.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {docs}\nnav: [index.md]\n")
    done = build(configuration, tmp_path / "site")
    assert done.returncode == 0, done.stderr
