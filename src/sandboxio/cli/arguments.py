"""Values on the command line that more than one command takes."""

from __future__ import annotations

import argparse

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET

__all__ = ["add_backend", "pair"]


def add_backend(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add `--backend`.

    Args:
        parser: The parser of a command.
        default: What happens without it, as words for the help.
    """
    parser.add_argument(
        "--backend",
        metavar="TARGET",
        help=f"a backend as a DSN, such as {DEFAULT_BACKEND}:// or {EXAMPLE_TARGET}; without it {default}",
    )


def pair(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as its two parts. The value is not repeated in the error.

    Example: `pair("tenant_id=acme") == ("tenant_id", "acme")`
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{name!r} is not of the form NAME=VALUE")
    return name, value
