"""`sandboxio run`: one command in a fresh sandbox, as if it ran here."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from typing import Final

from sandboxio.backends import DEFAULT_BACKEND
from sandboxio.cli.arguments import add_backend, cores, mebibytes, pair
from sandboxio.cli.exit_codes import TIMED_OUT, UNABLE, of_execution
from sandboxio.cli.hints import in_options
from sandboxio.cli.interruption import run_to_end
from sandboxio.cli.output import Output
from sandboxio.cli.transfers import download, upload

__all__ = ["DESCRIPTION", "EXAMPLES", "FAILED", "SUMMARY", "configure", "run"]

SUMMARY: Final = "run one command, or one Python file, in a fresh sandbox"
DESCRIPTION: Final = (
    "Run one command in a fresh sandbox that is gone afterwards. Its output is passed on as it comes, "
    "what is piped in is its standard input, and its exit code is this command's. Of its own this "
    "command exits with 124 after a timeout, 125 when the sandbox failed, 137 when memory ran out, and "
    "130 after Ctrl-C. The network is denied unless --egress or --allow opens it."
)
EXAMPLES: Final = """\
  sandboxio run -- python3 -c "print(6 * 7)"
  sandboxio run -c "uname -a | tr a-z A-Z"
  sandboxio run --python script.py --upload data.csv --download result.csv
  echo "print(6 * 7)" | sandboxio run --python -
  sandboxio run --secret-env API_TOKEN --egress allow -- ./fetch.sh"""
FAILED: Final = UNABLE


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.usage = (
        "sandboxio run [options] [--] COMMAND [ARG ...]\n"
        "       sandboxio run [options] -c TEXT\n"
        "       sandboxio run [options] --python FILE [ARG ...]"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-c", dest="text", metavar="TEXT", help="run a line of the sandbox's shell")
    what.add_argument("--python", metavar="FILE", help="run a local Python file, or standard input for -")
    parser.add_argument(
        "words", metavar="COMMAND", nargs=argparse.REMAINDER, help="a program and its arguments; no shell"
    )
    add_backend(parser, default=f"{DEFAULT_BACKEND}:// is used")
    _configure_limits(parser)
    _configure_surroundings(parser)


def _configure_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long the command may take; the default is 300",
    )
    group.add_argument("--cpu", metavar="CORES", type=cores, help="CPU time as a number of cores")
    group.add_argument("--memory-mb", metavar="MIB", type=mebibytes, help="memory in MiB")
    group.add_argument("--disk-mb", metavar="MIB", type=mebibytes, help="writable disk in MiB")
    group.add_argument("--egress", choices=("deny", "allow"), help="the network; the default is deny")
    group.add_argument(
        "--allow",
        metavar="HOST",
        action="append",
        default=[],
        help="deny all but this host, *.suffix, address or CIDR, each with an optional :port; repeatable",
    )
    group.add_argument(
        "--require-isolation",
        metavar="TIER",
        choices=("container", "gvisor", "microvm"),
        help="refuse anything below this tier: container, gvisor or microvm",
    )


def _configure_surroundings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("surroundings")
    group.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        type=pair,
        default=[],
        help="a variable of the command; repeatable; not for secrets, which others could see here",
    )
    group.add_argument(
        "--secret-env",
        metavar="NAME",
        action="append",
        type=_name,
        default=[],
        help="pass this variable of yours on as a secret, which is redacted; repeatable",
    )
    group.add_argument("--cwd", metavar="PATH", type=_folder, help="the folder in the sandbox to run in")
    group.add_argument(
        "--upload",
        metavar="LOCAL[:PATH]",
        action="append",
        type=upload,
        default=[],
        help="copy a file or folder into the sandbox first; repeatable",
    )
    group.add_argument(
        "--download",
        metavar="PATH[:LOCAL]",
        action="append",
        type=download,
        default=[],
        help="copy a file or folder out of it afterwards, also when the command failed; repeatable",
    )
    group.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        type=pair,
        default=[],
        help="metadata at the provider, by which `sandboxio reap` finds it; repeatable",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run it and return its exit code, or one of this command's own."""
    from sandboxio import ExecutionTimeout, SandboxError
    from sandboxio.cli.execution import execute

    try:
        return run_to_end(
            lambda: execute(arguments, _secrets(arguments.secret_env), output), on_signal=output.note
        )
    except ExecutionTimeout as exc:
        output.error(in_options(exc))
        return TIMED_OUT
    except SandboxError as exc:
        output.error(in_options(exc))
        return of_execution(exc)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return seconds


def _name(text: str) -> str:
    if "=" in text or not text:  # what follows the sign is the secret, so it is not repeated
        raise argparse.ArgumentTypeError("give the name of a variable alone; its value is read from it")
    if text not in os.environ:
        raise argparse.ArgumentTypeError(f"{text} is not set here")
    return text


def _folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the folder has no name; leave it out for the image's own")
    return text


def _secrets(names: Sequence[str]) -> dict[str, str]:
    """The values of these variables of this process."""
    return {name: os.environ[name] for name in names}
