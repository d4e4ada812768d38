"""Check that every relative link and heading anchor in the documentation resolves.

The pages under `docs/` are published as a site of their own, so a relative link out of that folder is dead
there and counts as broken. The Markdown files at the top of the checkout may link anywhere inside it.

    python scripts/check_doc_links.py [ROOT]
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*$")
EXPLICIT_ID = re.compile(r"\s*\{[^}]*#(?P<id>[\w.:-]+)[^}]*\}\s*$")
HTML_ID = re.compile(r"""<[^>]+\b(?:id|name)=["'](?P<id>[^"']+)["']""")
CODE_SPAN = re.compile(r"(`+).+?\1")
INLINE_LINK = re.compile(
    r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*(?P<target><[^>]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)"
)
REFERENCE_LINK = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+(?P<target>\S+)")
EXTERNAL = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """One link that does not hold, and why."""

    page: Path
    line: int
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.target}: {self.reason}"


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page that are not inside a fenced block."""
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        marker = FENCE.match(line)
        if fence is None and marker:
            fence = marker.group(1)
        elif fence is None:
            yield number, line
        elif marker and marker.group(1).startswith(fence) and not line.strip().strip(fence[0]):
            fence = None


def slug(heading: str) -> str:
    """Return the anchor that the site gives to a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode("ascii")
    plain = re.sub(r"[^\w\s-]", "", plain).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def anchors(page: Path) -> frozenset[str]:
    """Return every anchor that a page offers."""
    found: set[str] = set()
    for _, line in prose_lines(page.read_text(encoding="utf-8")):
        found.update(match.group("id") for match in HTML_ID.finditer(line))
        heading = HEADING.match(line)
        if heading is None:
            continue
        text = heading.group("text")
        explicit = EXPLICIT_ID.search(text)
        name = explicit.group("id") if explicit else slug(text)
        candidate, repeats = name, 0
        while candidate in found:
            repeats += 1
            candidate = f"{name}_{repeats}"
        found.add(candidate)
    return frozenset(found)


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and the target of every relative link on a page."""
    for number, line in prose_lines(page.read_text(encoding="utf-8")):
        visible = CODE_SPAN.sub("", line)
        matches = [*INLINE_LINK.finditer(visible), *REFERENCE_LINK.finditer(visible)]
        for match in matches:
            target = match.group("target").strip("<>")
            if target and not EXTERNAL.match(target):
                yield number, target


def fault(page: Path, target: str, boundary: Path) -> str | None:
    """Return what is wrong with one link, or `None`."""
    path, _, anchor = unquote(target).partition("#")
    if path.startswith("/"):
        return "is absolute; links are relative to their page"
    destination = (page.parent / path).resolve() if path else page.resolve()
    if not destination.is_relative_to(boundary.resolve()):
        return f"leaves {boundary.name}/"
    if not destination.exists():
        return "does not exist"
    if anchor and (destination.suffix != ".md" or anchor not in anchors(destination)):
        return f"has no heading #{anchor}"
    return None


def pages(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield every page with the folder that its links must stay in."""
    for page in sorted(root.glob("*.md")):
        yield page, root
    for page in sorted((root / "docs").rglob("*.md")):
        yield page, root / "docs"


def check(root: Path) -> list[BrokenLink]:
    """Return the broken links of a checkout."""
    broken: list[BrokenLink] = []
    for page, boundary in pages(root):
        for line, target in links(page):
            reason = fault(page, target, boundary)
            if reason is not None:
                broken.append(BrokenLink(page.relative_to(root), line, target, reason))
    return broken


def main(arguments: list[str]) -> int:
    """Print the broken links of the checkout and return the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    broken = check(root)
    for link in broken:
        print(link)
    print(f"{len(broken)} broken links in {sum(1 for _ in pages(root))} pages")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
