"""From arguments to an exit code. Each command is a module; this one finds it and shows its errors.

A command's module has `SUMMARY`, `DESCRIPTION`, `EXAMPLES`, `FAILED` (the exit code of a failure),
`configure(parser)` and `run(arguments, output)`, which returns the exit code. What the codes mean
is in `exit_codes`.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Final

from sandboxio._version import __version__
from sandboxio.cli import demo, doctor, reap, run
from sandboxio.cli.exit_codes import FAILURE, INTERRUPTED, OK, USAGE, of_error, of_signal
from sandboxio.cli.interruption import Interrupted
from sandboxio.cli.output import Output

__all__ = ["build_parser", "run_tool"]

_COMMANDS: Final = {"doctor": doctor, "demo": demo, "run": run, "reap": reap}
_EPILOG: Final = "`sandboxio COMMAND --help` shows the options of a command, with examples."


def run_tool(argv: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code.

    Example: `run_tool(["doctor", "--json"])`
    """
    given, command_line = _split(argv)
    parser = build_parser()
    try:
        arguments = parser.parse_args(given)
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return USAGE
        if command_line is not None:
            _add(command_line, arguments, parser)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else USAGE
    return _run(arguments)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole tool."""
    parser = argparse.ArgumentParser(
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
        module.configure(command)
    return parser


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


def _add(rest: list[str], arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Give what stands after `--` to the command that takes words; a `--` inside those is one of them."""
    if not hasattr(arguments, "words"):
        parser.error(f"{arguments.command} takes no arguments after --")
    arguments.words = [*arguments.words, "--", *rest] if arguments.words else rest


def _run(arguments: argparse.Namespace) -> int:
    output = Output(as_json=arguments.json)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _shown_by(output)
            return _outcome(arguments, output)
    except Interrupted as exc:
        return _stopped(output, str(exc), of_signal(exc.signal))
    except KeyboardInterrupt:  # it came where nothing had been started
        output.note("interrupted")
        return _stopped(output, "SIGINT", INTERRUPTED)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE


def _shown_by(output: Output) -> Callable[..., None]:
    def show(message: Warning | str, *where: object) -> None:
        output.warning(message)

    return show


def _outcome(arguments: argparse.Namespace, output: Output) -> int:
    from sandboxio import SandboxError

    command = _COMMANDS[arguments.command]
    try:
        code: int = command.run(arguments, output)
    except SandboxError as exc:
        output.error(exc)
        code = of_error(exc, otherwise=command.FAILED)
    except (Interrupted, BrokenPipeError):
        raise
    except Exception as exc:
        output.fault(exc)
        code = command.FAILED
    output.finish(ok=code == OK)
    return code


def _stopped(output: Output, signal: str, code: int) -> int:
    output.document["interrupted"] = signal
    output.finish(ok=False)
    return code
