"""From arguments to an exit code. Each command is a module; this one finds it and shows its errors.

A command's module has `SUMMARY`, `DESCRIPTION`, `EXAMPLES`, `FAILED` (the exit code of a failure),
`configure(parser)` and `run(arguments, output)`, which returns the exit code. What the codes mean
is in `exit_codes`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final, NoReturn

from sandboxio._version import __version__
from sandboxio.cli import demo, doctor, reap, run, stdio
from sandboxio.cli.exit_codes import FAILURE, INTERRUPTED, OK, READER_GONE, USAGE, of_error, of_signal
from sandboxio.cli.faults import alone
from sandboxio.cli.hints import in_options
from sandboxio.cli.interruption import Interrupted
from sandboxio.cli.output import Output, printable
from sandboxio.cli.stdio import Unwritable

__all__ = ["build_parser", "run_tool"]

_COMMANDS: Final = {"doctor": doctor, "demo": demo, "run": run, "reap": reap}
_EPILOG: Final = "`sandboxio COMMAND --help` shows the options of a command, with examples."


def run_tool(argv: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code.

    Example: `run_tool(["doctor", "--json"])`
    """
    stdio.prepare()
    try:
        arguments = _parsed(argv)
    except SystemExit as exc:  # the parser has said what there was to say
        code = exc.code if isinstance(exc.code, int) else USAGE
    else:
        code = _run(arguments)
    try:
        stdio.drain()
    except Unwritable as exc:
        return code or _unwritten(exc, FAILURE)
    return code


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole tool."""
    parser = _Parser(
        prog="sandboxio",
        description="Run code written by AI agents in sandboxes, through one API.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sandboxio {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        command.add_argument("--json", action="store_true", help="print one JSON document instead of text")
        command.set_defaults(parser=command)
        module.configure(command)
    return parser


class _Parser(argparse.ArgumentParser):
    """Repeats what it was given without what could steer a terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps a description, and leaves the lines of the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first `--`, and after it.

    Versions of Python differ in what their argparse does with it, so it never gets to see one.
    """
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, None
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments, understood. A mistake in those of a command is explained with its own usage."""
    given, rest = _split(argv)
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(given)
    if arguments.command is None:
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    command: argparse.ArgumentParser = arguments.parser
    if unknown:
        command.error(f"unrecognized arguments: {' '.join(unknown)}")
    if rest is not None:
        # What stands after `--` is for the command that takes words; a `--` inside those is one of them.
        if not hasattr(arguments, "words"):
            command.error(f"{arguments.command} takes no arguments after --")
        arguments.words = [*arguments.words, "--", *rest] if arguments.words else rest
    return arguments


def _run(arguments: argparse.Namespace) -> int:
    command = _COMMANDS[arguments.command]
    output = Output(as_json=arguments.json)
    with warnings.catch_warnings():
        warnings.showwarning = _shown_by(output)
        code = _outcome(command, arguments, output)
    try:
        output.finish(ok=code == OK)
    except Unwritable as exc:
        return code or _unwritten(exc, command.FAILED)
    return code


def _shown_by(output: Output) -> Callable[..., None]:
    def show(message: Warning | str, *where: object) -> None:
        output.warning(message)

    return show


def _outcome(command: ModuleType, arguments: argparse.Namespace, output: Output) -> int:
    try:
        code: int = command.run(arguments, output)
    except KeyboardInterrupt:  # it came where nothing had been started
        output.note("interrupted")
        output.document["interrupted"] = "SIGINT"
        return INTERRUPTED
    except Exception as exc:
        return _failure(alone(exc), output, command.FAILED)
    return code


def _failure(exc: Exception, output: Output, failed: int) -> int:
    """Show what a command raised, and return the exit code for it."""
    from sandboxio import SandboxError

    if isinstance(exc, Interrupted):
        output.document["interrupted"] = str(exc)
        return of_signal(exc.signal)
    if isinstance(exc, Unwritable):
        return _unwritten(exc, failed)
    if isinstance(exc, SandboxError):
        output.error(in_options(exc))
        return of_error(exc, otherwise=failed)
    output.fault(exc)
    return failed


def _unwritten(exc: Unwritable, failed: int) -> int:
    if exc.reader_gone:  # it has seen enough
        return READER_GONE
    stdio.note(f"sandboxio: {exc}")
    return failed
