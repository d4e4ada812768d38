"""The MCP server: six tools over one sandbox, for agent hosts that speak the Model Context Protocol.

`python -m sandboxio.mcp` starts it. Its SDK comes with the extra `mcp` and is imported when the server
starts: importing this package loads nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server until its client leaves or a signal comes, and return the exit code.

    Exit codes: 0 the client left, 1 failure, 2 usage, 128 + n ended by signal n (130 for Ctrl-C).

    Args:
        argv: The arguments; the default is those of the process.

    Example: `sys.exit(main(["--timeout", "600"]))`
    """
    from sandboxio.mcp.command import run

    return run(argv)
