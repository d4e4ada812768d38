"""`sandboxio doctor`: what is installed, reachable and enforced."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sandboxio.cli.exit_codes import FAILURE, OK
from sandboxio.cli.interruption import run_to_end
from sandboxio.cli.output import Output, Style, printable
from sandboxio.cli.progress import waiting

if TYPE_CHECKING:
    from sandboxio import BackendReport, Check

__all__ = ["DESCRIPTION", "EXAMPLES", "FAILED", "SUMMARY", "configure", "run"]

SUMMARY: Final = "show what is installed and whether it works"
DESCRIPTION: Final = (
    "Show what is installed and whether it works. It makes no paid call, and shows the names of "
    "variables but never their values, so its output can be pasted into a report as it is. "
    "Exits with 1 when an installed backend fails a check; a backend without its key fails none."
)
EXAMPLES: Final = """\
  sandboxio doctor
  sandboxio doctor --json"""
FAILED: Final = FAILURE

_MARKS: Final[dict[str, tuple[str, Style]]] = {
    "ok": ("ok  ", "good"),
    "warning": ("warn", "warn"),
    "failed": ("FAIL", "bad"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments: it has none."""


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Print the report; the code says whether an installed backend failed a check."""
    from sandboxio.diagnosis import examine

    with waiting("looking at the installed backends"):
        report = run_to_end(examine, on_signal=output.note)
    output.document.update(report.as_dict())
    output.line(output.styled(f"sandboxio {report.version}", "strong"))
    output.line(f"{report.python} on {report.platform}")
    if report.versions:
        output.line(f"needs: {_shown(report.versions)}")
    if report.variables:
        output.line(f"set: {printable(' '.join(report.variables))}")
    for backend in report.backends:
        _print_backend(backend, output)
    for name, command in report.not_installed.items():
        output.line()
        output.line(f"{output.styled(name, 'strong')}  not installed: {command}")
    return OK if report.ok else FAILED


def _print_backend(backend: BackendReport, output: Output) -> None:
    output.line()
    output.line(
        f"{output.styled(printable(backend.name), 'strong')}  isolation: {printable(backend.isolation)}"
    )
    if backend.versions:
        output.line(f"  {_shown(backend.versions)}")
    if backend.capabilities:
        output.line(f"  {output.styled(' '.join(backend.capabilities), 'faint')}")
    for variable, is_set in backend.credentials.items():
        output.line(f"  {variable} is {'set' if is_set else 'not set'}")
    for check in backend.checks:
        _print_check(check, output)


def _print_check(check: Check, output: Output) -> None:
    word, style = _MARKS[check.status]
    detail = f": {printable(check.detail)}" if check.detail else ""
    output.line(f"  {output.styled(word, style)} {printable(check.name)}{detail}")
    if check.hint and check.status != "ok":
        output.line(f"       fix: {printable(check.hint)}")


def _shown(versions: Mapping[str, str]) -> str:
    return printable(", ".join(f"{name} {version}" for name, version in versions.items()))
