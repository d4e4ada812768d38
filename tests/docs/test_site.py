"""The site builds strictly, has each error's page where the error points, and a fault fails the build."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sandboxio
from sandboxio import errors

BuildPages = Callable[..., "subprocess.CompletedProcess[str]"]


def concrete_errors() -> list[type[errors.SandboxError]]:
    classes = [getattr(errors, name) for name in errors.__all__]
    return [cls for cls in classes if issubclass(cls, errors.SandboxError) and cls.code]


@pytest.mark.parametrize("error", concrete_errors(), ids=lambda cls: cls.__name__)
def test_the_url_of_an_error_is_a_page_of_the_site(error: type[errors.SandboxError], site: Path) -> None:
    path = urlsplit(error("something happened").url).path
    assert (site / path.strip("/") / "index.html").is_file()


@pytest.mark.parametrize("name", sorted(set(sandboxio.__all__) - {"__version__"}))
def test_a_public_name_is_in_the_reference(name: str, site: Path) -> None:
    pages = [site / "reference" / page / "index.html" for page in ("api", "adapter")]
    headings = {f'id="sandboxio.{name}"', f'id="sandboxio.errors.{name}"'}
    assert any(heading in page.read_text(encoding="utf-8") for page in pages for heading in headings)


def test_an_example_of_a_docstring_is_code(site: Path) -> None:
    text = (site / "reference" / "testing" / "index.html").read_text(encoding="utf-8")
    fixture = text[text.index('id="sandboxio.testing.pytest_plugin.sbx_fake"') :]
    example = fixture[fixture.index("<strong>Example</strong>") :]
    assert example.splitlines()[1].startswith('<div class="highlight"><pre>')


@pytest.mark.parametrize("page", ["index.html", "how-to/docker/index.html", "errors/SBX_E1000/index.html"])
def test_a_page_says_its_licences(page: str, site: Path) -> None:
    text = (site / page).read_text(encoding="utf-8")
    assert "Prose is licensed under CC BY 4.0; code in fenced blocks is licensed under MIT." in text


@pytest.mark.parametrize(
    "fault",
    ["[gone](gone.md)", "[no heading](index.md#nothing)", "::: sandboxio.no_such_name"],
    ids=["link", "anchor", "reference"],
)
def test_a_fault_fails_the_build(fault: str, build_pages: BuildPages) -> None:
    done = build_pages({"index.md": f"# Home\n\n{fault}\n"})
    assert done.returncode != 0
    assert "WARNING" in done.stderr or "ERROR" in done.stderr


def test_a_page_without_a_fault_builds(build_pages: BuildPages) -> None:
    done = build_pages({"index.md": "# Home\n\n[here](#home)\n\n::: sandboxio.errors.SandboxGone\n"})
    assert done.returncode == 0, done.stderr
