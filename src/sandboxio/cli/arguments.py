"""Values on the command line that more than one command takes."""

from __future__ import annotations

import argparse

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET

__all__ = ["add_backend", "cores", "mebibytes", "pair"]


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


def mebibytes(text: str) -> int:
    """A cap in MiB, which any provider can count in bytes.

    Example: `mebibytes("512") == 512`
    """
    from sandboxio import ConfigurationError, Resources

    try:
        number = int(text)
        Resources(memory_mb=number)
    except (ValueError, ConfigurationError):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of MiB that a cap can be") from None
    return number


def cores(text: str) -> float:
    """CPU time as a number of cores; fractions are allowed.

    Example: `cores("0.5") == 0.5`
    """
    from sandboxio import ConfigurationError, Resources

    try:
        number = float(text)
        Resources(cpu=number)
    except (ValueError, ConfigurationError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of cores that a cap can be") from None
    return number
