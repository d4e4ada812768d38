"""In the built site every link and picture leads to a file of the site, and every anchor to a heading."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

HOST = "docs.sandboxio.dev"


class Page(HTMLParser):
    """What a page offers as anchors, and what it points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an anchor or a target."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.targets.append(value)


def read_pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def broken_links(site: Path) -> Iterator[str]:
    pages = read_pages(site)
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme not in ("", "http", "https") or parts.netloc not in ("", HOST):
                continue
            from_root = bool(parts.netloc) or parts.path.startswith("/")
            wanted = (site if from_root else path.parent) / unquote(parts.path).lstrip("/")
            found = (wanted if parts.path or from_root else path).resolve()
            if found.is_dir():
                found /= "index.html"
            where = f"{path.relative_to(site)}: {target}"
            if not found.is_relative_to(site.resolve()):
                yield f"{where} leaves the site"
            elif not found.is_file():
                yield f"{where} does not exist"
            elif parts.fragment and found.suffix == ".html":
                known = pages[site / found.relative_to(site.resolve())].anchors
                if unquote(parts.fragment) not in known:
                    yield f"{where} has no such anchor"


def test_every_link_of_the_site_holds(site: Path) -> None:
    assert list(broken_links(site)) == []


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("gone/", "does not exist"),
        ("/gone.html", "does not exist"),
        (f"https://{HOST}/gone/", "does not exist"),
        ("other/#nothing", "has no such anchor"),
        ("#nothing", "has no such anchor"),
        ("../outside.html", "leaves the site"),
    ],
)
def test_a_link_that_does_not_hold_is_noticed(target: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "outside.html").write_text("")
    site = tmp_path / "site"
    (site / "other").mkdir(parents=True)
    (site / "other" / "index.html").write_text('<h1 id="title">Other</h1>')
    (site / "index.html").write_text(f'<a href="other/#title">fine</a><a href="{target}">not</a>')
    (found,) = broken_links(site)
    assert found == f"index.html: {target} {fault}"
