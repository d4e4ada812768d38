"""The agent: the machine's side of the wire."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from collections.abc import Mapping
from typing import Any

from .children import Children
from .contexts import Contexts
from .files import Files
from .mux import Wire
from .processes import Processes

__all__ = ["main"]

_PR_SET_DUMPABLE = 4
_SURVIVED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


def main(home: str, envs: Mapping[str, str], kernel: str) -> None:
    """Serve until the host is gone.

    Args:
        home: Where relative paths start.
        envs: The machine's variables.
        kernel: The source of the kernel's program.
    """
    # What runs beside the agent has its user id, and must not reach into its descriptors.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in _SURVIVED:  # handlers, since what is ignored would be ignored by children too
        signal.signal(number, lambda *_: None)
    asyncio.run(_serve(home, envs, kernel))


async def _serve(home: str, envs: Mapping[str, str], kernel: str) -> None:
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGINT, lambda *_: None)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    children = Children()
    processes = Processes(children, home, envs)
    files = Files(home)
    contexts = Contexts(children, kernel, home, envs)
    handlers: Mapping[str, Any] = {
        **{
            f"process.{name}": getattr(processes, name)
            for name in ("start", "input", "close_input", "signal")
        },
        **{
            f"file.{name}": getattr(files, name)
            for name in ("stat", "list", "make_dir", "move", "remove", "size", "read", "write")
        },
        **{
            f"context.{name}": getattr(contexts, name)
            for name in ("open", "list", "restart", "close", "execute")
        },
    }
    wire = Wire(reader, transport, handlers)
    wire.post({"id": 0, "op": "ready"})
    await wire.run()
