"""Write the documentation page of every error code from the catalog in `sandboxio.error_catalog`.

python scripts/gen_error_catalog.py            write docs/errors/, and remove pages that no code has
python scripts/gen_error_catalog.py --check    change nothing; fail if a page is missing, stale or left over
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from sandboxio import errors
from sandboxio.error_catalog import CATALOG, CatalogEntry

PAGES = Path(__file__).resolve().parents[1] / "docs" / "errors"
GENERATED = (
    "<!-- Generated from sandboxio.error_catalog by scripts/gen_error_catalog.py; edit the catalog. -->"
)


def error_classes() -> dict[str, type[errors.SandboxError]]:
    """Return the class that raises each code."""
    exported = (getattr(errors, name) for name in errors.__all__)
    concrete = (cls for cls in exported if issubclass(cls, errors.SandboxError) and cls.code)
    return {cls.code: cls for cls in concrete}


def bases_of(cls: type[errors.SandboxError]) -> str:
    """Return the classes that catch an error besides its own, nearest first."""
    bases = [base for base in cls.__mro__[1:] if issubclass(base, errors.SandboxError)]
    return ", ".join(f"`{base.__name__}`" for base in bases)


def bullets(lines: tuple[str, ...]) -> str:
    """Render lines as a list whose order means nothing."""
    return "\n".join(f"- {line}" for line in lines)


def numbers(lines: tuple[str, ...]) -> str:
    """Render lines as steps, to be tried in their order."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def program(body: str) -> str:
    """Render the body of a coroutine as a program that can be copied and run."""
    lines = ["import asyncio", "", "import sandboxio", "", "", "async def main() -> None:"]
    lines += [textwrap.indent(body.strip(), "    "), "", "", "asyncio.run(main())"]
    return "\n".join(lines)


def page(code: str, entry: CatalogEntry) -> str:
    """Render the page of one code."""
    cls = error_classes()[code]
    parts = [
        f"# {code}: {entry.title}",
        GENERATED,
        entry.meaning,
        f"Raised as `sandboxio.{cls.__name__}`. Also caught as {bases_of(cls)}.",
        "## Causes",
        bullets(entry.causes),
        "## Fixes",
        numbers(entry.fixes),
        "## Example",
        f"```python\n{program(entry.example)}\n```",
        "[All error codes](index.md)",
    ]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """Render the list of all codes."""
    rows = [
        f"| [{code}]({code}.md) | `{entry.exception}` | {entry.title} |"
        for code, entry in sorted(CATALOG.items())
    ]
    return "\n".join(
        [
            "# Error codes",
            "",
            GENERATED,
            "",
            "Every error of sandboxio carries a code, the fix, and the address of one of these pages.",
            "Codes and addresses are stable: a code never changes its meaning and is never used again.",
            "",
            "| code | class | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def rendered() -> dict[str, str]:
    """Return every page by its file name."""
    return {"index.md": index()} | {f"{code}.md": page(code, entry) for code, entry in CATALOG.items()}


def disagreements() -> list[str]:
    """Return where the catalog and the error classes contradict each other."""
    classes = error_classes()
    return [
        *(
            f"{code} is raised by {classes[code].__name__} and not in the catalog"
            for code in classes.keys() - CATALOG
        ),
        *(f"{code} is in the catalog and no error carries it" for code in CATALOG.keys() - classes),
        *(
            f"{code} is {entry.exception} in the catalog and {classes[code].__name__} in the code"
            for code, entry in CATALOG.items()
            if code in classes and entry.exception != classes[code].__name__
        ),
    ]


def differences(folder: Path) -> list[str]:
    """Return what would have to change in a folder of pages."""
    wanted = rendered()
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return [
        *(f"{name} is missing" for name in sorted(wanted.keys() - present)),
        *(f"{name} belongs to no code" for name in sorted(present.keys() - wanted)),
        *(f"{name} is stale" for name in sorted(wanted.keys() & present) if wanted[name] != present[name]),
    ]


def write(folder: Path) -> None:
    """Make a folder hold exactly the pages of the catalog."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = rendered()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write or check the pages and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the pages of the error codes.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail on a difference")
    parser.add_argument("--pages", type=Path, default=PAGES, metavar="DIR")
    options = parser.parse_args(arguments)

    faults = disagreements()
    if not faults and not options.check:
        write(options.pages)
    faults = faults or differences(options.pages)
    for fault in faults:
        print(fault)
    print(f"{len(CATALOG)} error codes, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
