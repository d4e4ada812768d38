"""The command behind `python -m sandboxio.mcp`: options, then the wire, then the SDK and the server."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from sandboxio.backends import install_command
from sandboxio.errors import BackendNotInstalled, ConfigurationError, SandboxError
from sandboxio.mcp.options import TOKEN_VARIABLE, Options, parse_options
from sandboxio.mcp.wire import Wire, claim_stdio

__all__ = ["run"]

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
SDK: Final = "mcp"


def run(argv: Sequence[str] | None = None) -> int:
    """Run the server and return the exit code; see `sandboxio.mcp.main`."""
    try:
        options = parse_options(argv)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else USAGE
    # What a sandbox's provider starts as a child has no need of it.
    os.environ.pop(TOKEN_VARIABLE, None)
    try:
        # Before anything is imported that could print.
        wire = claim_stdio() if options.transport == "stdio" else None
    except OSError as exc:
        _say(f"standard input and output cannot be used: {exc.strerror or exc}")
        return FAILURE
    try:
        return _serve(options, wire)
    except SandboxError as exc:
        _say(str(exc))
        usage = isinstance(exc, ConfigurationError) and not isinstance(exc, BackendNotInstalled)
        return USAGE if usage else FAILURE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED


def _serve(options: Options, wire: Wire | None) -> int:
    _require_sdk()
    import anyio

    from sandboxio.mcp.errors import Redaction
    from sandboxio.mcp.holder import Profile

    profile, redaction = Profile.from_options(options), Redaction.of_process(options.token)
    if wire is None:
        from sandboxio.mcp.http import serve_http
        from sandboxio.mcp.server import server_for_sessions

        number = anyio.run(serve_http, server_for_sessions(profile, redaction), options)
    else:
        from sandboxio.mcp.server import server_for_process
        from sandboxio.mcp.stdio import serve_stdio

        number = anyio.run(serve_stdio, server_for_process(profile, redaction), wire)
    return 128 + number if number else OK


def _require_sdk() -> None:
    try:
        import_module("mcp.server.mcpserver")
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] != SDK:
            raise
        raise BackendNotInstalled(
            "the MCP server needs version 2 of the MCP SDK, which is not installed",
            hint=install_command("mcp"),
        ) from exc


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
