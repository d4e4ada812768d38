"""The command line tool: `sandboxio`, and `python -m sandboxio`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code.

    Args:
        argv: The arguments; the default is those of the process.

    Example: `sys.exit(main(["doctor", "--json"]))`
    """
    try:  # an interrupt can come while the tool itself is being loaded
        from sandboxio.cli.tool import run_tool

        return run_tool(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
