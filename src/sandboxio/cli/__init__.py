"""The command line tool. Each command is a module; this one finds it and turns errors into exit codes.

Exit codes: 0 ok, 1 failure, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from sandboxio._version import __version__
from sandboxio.cli import demo, doctor, reap
from sandboxio.cli.output import Output

__all__ = ["main"]

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

_COMMANDS: Final = {"demo": demo, "doctor": doctor, "reap": reap}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code.

    Args:
        argv: The arguments; the default is those of the process.

    Example: `sys.exit(main(["doctor", "--json"]))`
    """
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else USAGE
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    output = Output(as_json=arguments.json)
    try:
        return _outcome(arguments, output)
    except KeyboardInterrupt:
        output.note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE


def _outcome(arguments: argparse.Namespace, output: Output) -> int:
    from sandboxio import BackendNotInstalled, ConfigurationError, SandboxError

    code = FAILURE
    try:
        if _COMMANDS[arguments.command].run(arguments, output):
            code = OK
    except SandboxError as exc:
        output.error(exc)
        if isinstance(exc, ConfigurationError) and not isinstance(exc, BackendNotInstalled):
            code = USAGE
    output.finish(ok=code == OK)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sandboxio", description="Run code written by AI agents in sandboxes, through one API."
    )
    parser.add_argument("--version", action="version", version=f"sandboxio {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        command.add_argument("--json", action="store_true", help="print one JSON document instead of text")
        module.configure(command)
    return parser
