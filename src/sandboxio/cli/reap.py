"""`sandboxio reap`: what the library left at the providers, and its end."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sandboxio.backends import DEFAULT_BACKEND
from sandboxio.cli.arguments import add_backend, pair
from sandboxio.cli.exit_codes import FAILURE, OK
from sandboxio.cli.interruption import run_to_end
from sandboxio.cli.inventory import Place, ask, ask_all, end, fields
from sandboxio.cli.output import Output, printable
from sandboxio.cli.progress import waiting

if TYPE_CHECKING:
    from datetime import datetime

    from sandboxio import ManagedSandbox, SandboxError

__all__ = ["DESCRIPTION", "EXAMPLES", "FAILED", "SUMMARY", "configure", "run"]

SUMMARY: Final = "list what sandboxio made at the backends, and end it with --kill"
DESCRIPTION: Final = (
    "List every sandbox that sandboxio made, stopped ones included, at all installed backends. "
    "Nothing is changed without --kill. With it every listed sandbox is ended, also one that another "
    "program uses now: narrow the list by --label first."
)
EXAMPLES: Final = f"""\
  sandboxio reap
  sandboxio reap --backend {DEFAULT_BACKEND}:// --label tenant_id=acme
  sandboxio reap --label tenant_id=acme --kill"""
FAILED: Final = FAILURE

_HEADER: Final = ("SANDBOX", "BACKEND", "STATE", "CREATED", "EXPIRES", "LABELS")
_ID_WIDTH: Final = 20


@dataclass(slots=True)
class _Table:
    """Lines of cells, each column as wide as its widest cell; the first cell of all says how it went."""

    lines: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def add(self, managed: ManagedSandbox) -> None:
        labels = " ".join(f"{name}={value}" for name, value in sorted(managed.metadata.items()))
        cells = (
            managed.id[:_ID_WIDTH],
            managed.backend,
            managed.state,
            _moment(managed.created_at),
            _moment(managed.expires_at),
            labels,
        )
        self.lines.append(tuple(printable(cell).replace("\n", " ") for cell in cells))

    def rendered(self) -> list[str]:
        """The header and the lines."""
        lines = [_HEADER, *self.lines]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_backend(parser, default="all installed ones are asked")
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        type=pair,
        default=[],
        help="only sandboxes with this metadata; given several times, all must match",
    )
    parser.add_argument("--kill", action="store_true", help="end what is listed")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """List, end if that is wanted; the code says whether all backends answered and all that should ended."""
    ok = run_to_end(lambda: _reap(arguments, output), on_signal=output.note)
    return OK if ok else FAILED


async def _reap(arguments: argparse.Namespace, output: Output) -> bool:
    rows: list[dict[str, Any]] = []
    output.document.update(killed=arguments.kill, backends=[], sandboxes=rows)
    with waiting("asking the backends"):
        if arguments.backend is not None:
            places = [await ask(arguments.backend, arguments.label)]
        else:
            places = await ask_all(arguments.label)
    output.document["backends"] = [place.row() for place in places]
    table = _Table()
    ended: list[SandboxError | None] = []
    for place in places:
        for managed in place.found:
            row = _row(managed)
            rows.append(row)
            table.add(managed)
            if arguments.kill and place.backend is not None:
                failure = await end(place.backend, managed)
                row.update(ended=failure is None, failure=fields(failure))
                ended.append(failure)
    _show(places, table, ended, output, killed=arguments.kill)
    return not any(place.failure for place in places) and not any(ended)


def _show(
    places: list[Place],
    table: _Table,
    ended: list[SandboxError | None],
    output: Output,
    *,
    killed: bool,
) -> None:
    if table.lines:
        header, *lines = table.rendered()
        output.line(output.styled(("       " if killed else "") + header, "strong"))
        for number, line in enumerate(lines):
            failure = ended[number] if killed else None
            output.line(_outcome(failure, output) + line if killed else line)
            if failure is not None:
                output.line(f"       [{failure.code}] {printable(failure.message)}")
                _show_fix(failure, output)
    for place in places:
        if place.skipped:
            output.line(f"{printable(place.name)} was not asked: {printable(place.skipped)}")
        if place.failure is not None:
            word = output.styled("FAIL", "bad")
            told = f"[{place.failure.code}] {place.failure.message}"
            output.line(f"{word} {printable(place.name)}: {printable(told)}")
            _show_fix(place.failure, output)
    output.line(_summary(places, len(table.lines), killed=killed))


def _show_fix(error: SandboxError, output: Output) -> None:
    output.line(f"       fix: {printable(error.hint)}")
    output.line(f"       page: {error.url}")


def _outcome(failure: SandboxError | None, output: Output) -> str:
    return output.styled("ended  ", "good") if failure is None else output.styled("FAIL   ", "bad")


def _row(managed: ManagedSandbox) -> dict[str, Any]:
    return {
        "id": managed.id,
        "backend": managed.backend,
        "state": managed.state,
        "created_at": managed.created_at.isoformat() if managed.created_at else None,
        "expires_at": managed.expires_at.isoformat() if managed.expires_at else None,
        "metadata": dict(managed.metadata),
    }


def _moment(when: datetime | None) -> str:
    return when.isoformat(" ", "seconds") if when else "unknown"


def _summary(places: list[Place], count: int, *, killed: bool) -> str:
    if not count:
        answered = [printable(place.name) for place in places if place.backend is not None]
        if not any(place.failure for place in places):
            return "nothing was found" if answered else "no backend was asked"
        return f"nothing was found at {' and '.join(answered)}" if answered else "no backend answered"
    noun = "sandbox" if count == 1 else "sandboxes"
    return f"{count} {noun}" if killed else f"{count} {noun}; --kill ends what is listed"
