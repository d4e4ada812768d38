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
SIGNALLED: Final = 128
INTERRUPTED: Final = SIGNALLED + 2
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
    missing = _missing_sdk()
    if missing is not None:
        _say(str(missing))
        return FAILURE
    import anyio

    from sandboxio.mcp.errors import Redaction
    from sandboxio.mcp.holder import Profile
    from sandboxio.mcp.logs import log_to_stderr
    from sandboxio.mcp.preflight import refuse_unsupported
    from sandboxio.mcp.signals import ending_signals

    log_to_stderr()
    profile, redaction = Profile.from_options(options), Redaction.of_process(options.token)
    refuse_unsupported(profile)
    with ending_signals() as signals:
        if wire is None:
            from sandboxio.mcp.http import serve_http
            from sandboxio.mcp.server import server_for_sessions

            anyio.run(serve_http, server_for_sessions(profile, redaction), options, signals)
        else:
            from sandboxio.mcp.server import server_for_process
            from sandboxio.mcp.stdio import serve_stdio

            if os.isatty(wire.input_fd):
                _say("sandboxio.mcp waits for an MCP client on standard input; Ctrl-C ends it")
            anyio.run(serve_stdio, server_for_process(profile, redaction), wire, signals)
    return SIGNALLED + signals.first if signals.first else OK


def _missing_sdk() -> ConfigurationError | None:
    try:
        import_module("mcp.server.mcpserver")
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] != SDK:
            raise
        return ConfigurationError(
            "the MCP server needs version 2 of the MCP SDK, which is not installed",
            hint=install_command("mcp"),
        )
    return None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
