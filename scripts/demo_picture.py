"""Draw the picture of the README from what `sandboxio demo` really prints here.

    python scripts/demo_picture.py [--backend TARGET] [--file PATH]

The demo runs for real; a run that fails draws nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "docs" / "assets" / "demo.svg"
BOUND_S = 300

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"  # browsers fold ordinary ones, and the columns are gone
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
FONT_PX = 14
CHARACTER_PX = 8.4
LINE_PX = 22
MARGIN_PX = 22
BAR_PX = 34

BACKGROUND, BAR, TEXT, QUIET = "#161b22", "#21262d", "#e6edf3", "#9da7b3"
COLOURS = {"ok": "#56d364", "failed": "#ff7b72", "$": "#79c0ff"}


def run_demo(backend: str | None) -> list[str]:
    """Run the demo and return its lines.

    Raises:
        SystemExit: The demo failed, so there is nothing to show.
    """
    command = [sys.executable, "-m", "sandboxio", "demo", *(("--backend", backend) if backend else ())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_S, check=False)
    if done.returncode:
        sys.exit(f"the demo failed, so no picture was drawn:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def text_at(column: int, row: int, text: str, colour: str) -> str:
    """Return one run of text; its length is fixed, so that any monospaced font keeps the columns."""
    x = MARGIN_PX + column * CHARACTER_PX
    y = BAR_PX + MARGIN_PX + row * LINE_PX
    width = len(text) * CHARACTER_PX
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{colour}" textLength="{width:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text).replace(" ", NO_BREAK_SPACE)}</text>'
    )


def drawn_line(row: int, line: str) -> list[str]:
    """Return a line in its colours: the first word says how a step went, what follows is detail."""
    head, _, rest = line.partition(" ")
    if head not in COLOURS:
        return [text_at(0, row, line, QUIET)]
    indent = len(line) - len(rest.lstrip())
    return [text_at(0, row, head, COLOURS[head]), text_at(indent, row, line[indent:], TEXT)]


def picture(lines: Sequence[str]) -> str:
    """Return the SVG of a terminal that shows these lines."""
    shown = [line.rstrip() for line in lines]
    width = round(2 * MARGIN_PX + max(len(line) for line in shown) * CHARACTER_PX)
    height = BAR_PX + 2 * MARGIN_PX + (len(shown) - 1) * LINE_PX
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    dots = [
        f'<circle cx="{MARGIN_PX + 18 * number}" cy="{BAR_PX // 2}" r="5" fill="{QUIET}" opacity="0.5"/>'
        for number in range(3)
    ]
    body = [part for row, line in enumerate(shown) for part in drawn_line(row, line) if line]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>sandboxio demo in a terminal</title>",
            f"<desc>{escape(' / '.join(shown))}</desc>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            f'<path d="M0 {BAR_PX}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V{BAR_PX}z" fill="{BAR}"/>',
            *dots,
            f'<g font-size="{FONT_PX}" font-family="{FONT}">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """Run the demo and write the picture."""
    parser = argparse.ArgumentParser(description="Draw what `sandboxio demo` prints, as an SVG.")
    parser.add_argument("--backend", metavar="TARGET", help="which backend; the demo chooses by itself")
    parser.add_argument("--file", type=Path, default=TARGET, metavar="PATH")
    options = parser.parse_args(arguments)

    lines = run_demo(options.backend)
    options.file.write_text(picture(["$ sandboxio demo", *lines]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
