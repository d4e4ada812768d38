"""`python -m e2b_server`: serve until interrupted, or until standard input ends."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from .server import E2BServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, and print the environment variables that lead the SDK here."""
    parser = argparse.ArgumentParser(prog="e2b_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port to listen on; any free one without it")
    options = parser.parse_args(arguments)
    # Being terminated shuts the machines down as being interrupted does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with E2BServer(port=options.port) as server:
        try:
            for name, value in server.environ.items():
                print(f"{name}={value}", flush=True)
            while sys.stdin.buffer.readline():
                pass
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
