"""The command line tool: `sandboxio`, and `python -m sandboxio`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what type checkers know; nothing is loaded here before signals are held back
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_SIGNAL_BASE = 128


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code.

    Args:
        argv: The arguments; the default is those of the process.

    Example: `sys.exit(main(["doctor", "--json"]))`
    """
    from sandboxio.cli.signals import SignalsHeld, ignore_signals

    try:
        with SignalsHeld():
            from sandboxio.cli.tool import run_tool

            code = run_tool(sys.argv[1:] if argv is None else argv)
            if argv is None and code > _SIGNAL_BASE:
                ignore_signals()
            return code
    except KeyboardInterrupt:  # it came where there was nothing to end
        from sandboxio.cli.stdio import note

        note("interrupted")
        return 130
