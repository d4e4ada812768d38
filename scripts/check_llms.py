"""Check that the built site's files for models hold every page of the documentation.

`llms.txt` is an index and `llms-full.txt` is all pages in one. Both are made with the site, so they cannot be
stale; but a page can fall through the globs of `mkdocs.yml`, and the index can name a file that is not there.

    python scripts/check_llms.py SITE [DOCS]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

DOCS = Path(__file__).resolve().parents[1] / "docs"
INDEX_ENTRY = re.compile(r"^- \[.+\]\((?P<url>\S+)\)", re.MULTILINE)
HEADING = re.compile(r"^# (?P<title>.+?)\s*$", re.MULTILINE)


def page_path(page: Path, docs: Path) -> str:
    """Return where the site has the Markdown of a page."""
    path = page.relative_to(docs).with_suffix("")
    if path.name in ("index", "README"):
        path = path.parent
    return (path / "index.md").as_posix()


def bare(text: str) -> str:
    """Return text without what Markdown writers escape and space differently."""
    return re.sub(r"[\W_]+", "", text)


def faults(site: Path, docs: Path) -> Iterator[str]:
    """Yield what is wrong with the two files of a built site."""
    index = (site / "llms.txt").read_text(encoding="utf-8")
    listed = {urlsplit(match["url"]).path.lstrip("/") for match in INDEX_ENTRY.finditer(index)}
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    titles = {bare(match["title"]) for match in HEADING.finditer(full)}

    for path in sorted(listed):
        if not (site / path).is_file():
            yield f"llms.txt names {path}, which the site does not have"
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs).as_posix()
        if page_path(page, docs) not in listed:
            yield f"llms.txt lacks {name}"
        heading = HEADING.search(page.read_text(encoding="utf-8"))
        if heading is None:
            yield f"{name} has no title"
        elif bare(heading["title"]) not in titles:
            yield f"llms-full.txt lacks {name}"


def main(arguments: list[str]) -> int:
    """Print what is missing and return the exit code."""
    if len(arguments) not in (1, 2):
        print("usage: python scripts/check_llms.py SITE [DOCS]", file=sys.stderr)
        return 2
    site, docs = Path(arguments[0]), Path(arguments[1]) if arguments[1:] else DOCS
    found = list(faults(site, docs))
    for fault in found:
        print(fault)
    print(f"{len(found)} faults in llms.txt and llms-full.txt")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
