"""What the server is told at its start. Nothing changes it afterwards, no tool and no client."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from sandboxio._version import __version__
from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET

__all__ = ["TOKEN_VARIABLE", "Options", "parse_options"]

Transport = Literal["stdio", "streamable-http"]
Egress = Literal["deny", "allow", "learn"]

TOKEN_VARIABLE: Final = "SBX_MCP_TOKEN"  # noqa: S105 -- the variable's name, not a token
DEFAULT_LIFETIME: Final = 1800.0
DEFAULT_MAX_SESSIONS: Final = 16

DESCRIPTION: Final = """\
Serve six tools over one sandbox to an agent host: run_python, run_command,
read_file, write_file, list_files and sandbox_info. The sandbox is made at the
first call and ended with the session. Everything below is fixed at start."""
EPILOG: Final = f"""\
environment:
  {TOKEN_VARIABLE}   the bearer token that clients of streamable-http must send; every
                  address beyond this machine needs one. The command line does not
                  take it, since other users can read that.
  SBX_DEBUG=1     log more, to standard error

examples:
  python -m sandboxio.mcp
  python -m sandboxio.mcp --backend {EXAMPLE_TARGET} --timeout 3600
  python -m sandboxio.mcp --transport streamable-http --port 8000
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The server's configuration.

    Attributes:
        backend: The target of every sandbox, as for `sandboxio.create`, without a timeout in it.
        timeout: Lifetime of a sandbox in seconds.
        egress: What sandboxes may reach: `"deny"`, `"allow"` or `"learn"`.
        allow: With `"deny"`, the only destinations that they reach.
        transport: `"stdio"` or `"streamable-http"`.
        host: The address to listen on.
        port: The port to listen on; 0 lets the system choose.
        allowed_hosts: Further values of the `Host` header, for a proxy's public name.
        allowed_origins: Further values of the `Origin` header, for web clients.
        max_sessions: How many HTTP sessions, and so sandboxes, may be open at once.
        token: The bearer token that HTTP clients must send; `None` asks for none.

    Example: `Options(timeout=600, allow=("example.org",))`
    """

    backend: str = f"{DEFAULT_BACKEND}://"
    timeout: float = DEFAULT_LIFETIME
    egress: Egress = "deny"
    allow: tuple[str, ...] = ()
    transport: Transport = "stdio"
    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_sessions: int = DEFAULT_MAX_SESSIONS
    token: str | None = field(default=None, repr=False)


def parse_options(argv: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> Options:
    """Read the command line, and the token from the environment.

    Raises:
        SystemExit: The arguments are wrong (2), or help or the version was asked for (0).

    Example: `parse_options(["--egress", "allow"])`
    """
    values = _parser().parse_args(argv)
    return Options(
        backend=values.backend,
        timeout=values.timeout,
        egress=cast("Egress", values.egress),
        allow=tuple(values.allow),
        transport=cast("Transport", values.transport),
        host=values.host,
        port=values.port,
        allowed_hosts=tuple(values.allowed_host),
        allowed_origins=tuple(values.allowed_origin),
        max_sessions=values.max_sessions,
        token=environment.get(TOKEN_VARIABLE) or None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandboxio.mcp",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    defaults = Options()
    add = parser.add_argument
    add("--version", action="version", version=f"sandboxio {__version__}")
    add(
        "--backend",
        metavar="TARGET",
        default=defaults.backend,
        help="where sandboxes run (default: %(default)s)",
    )
    add(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=defaults.timeout,
        help="lifetime of a sandbox (default: %(default)g)",
    )
    add(
        "--egress",
        choices=get_args(Egress),
        default=defaults.egress,
        help="what sandboxes may reach (default: %(default)s)",
    )
    add(
        "--allow",
        metavar="HOST",
        action="extend",
        nargs="+",
        default=[],
        help="with --egress deny: destinations that are reachable all the same",
    )
    add(
        "--transport",
        choices=get_args(Transport),
        default=defaults.transport,
        help="how clients connect (default: %(default)s)",
    )
    http = parser.add_argument_group("streamable-http")
    http.add_argument("--host", default=defaults.host, help="address to listen on (default: %(default)s)")
    http.add_argument(
        "--port",
        type=_port,
        default=defaults.port,
        help="port to listen on; 0 chooses one (default: %(default)s)",
    )
    http.add_argument(
        "--allowed-host", metavar="HOST", action="append", default=[], help="accept this Host header too"
    )
    http.add_argument(
        "--allowed-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="accept this Origin header too",
    )
    http.add_argument(
        "--max-sessions",
        metavar="N",
        type=_positive,
        default=defaults.max_sessions,
        help="sessions, and so sandboxes, at once (default: %(default)s)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no positive number of seconds, and every sandbox has a lifetime"
        )
    return seconds


def _port(text: str) -> int:
    return _whole_number(text, 0, 65535, f"{text!r} is no port from 0 to 65535")


def _positive(text: str) -> int:
    return _whole_number(text, 1, sys.maxsize, f"{text!r} is no positive whole number")


def _whole_number(text: str, least: int, most: int, otherwise: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(otherwise)
    return number
