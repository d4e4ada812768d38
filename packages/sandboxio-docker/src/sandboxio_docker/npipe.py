"""Windows' named pipes as sockets. It follows docker-py's pipe; it has not run on Windows yet.

A pipe cannot be waited for as a socket can, so two threads for each open stream carry bytes
between it and one end of a socket pair.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

from sandboxio_docker.stream import CHUNK, SocketStream

__all__ = ["bridge", "open_pipe"]


def open_pipe(path: str) -> SocketStream:
    """Open the pipe at `path`. Blocking.

    Raises:
        OSError: Nothing listens there.
    """
    try:
        from docker.transport import NpipeSocket  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as exc:
        raise OSError("named pipes exist on Windows only, and need pywin32") from exc
    pipe: Any = NpipeSocket()
    pipe.connect(path)
    return bridge(pipe)


def bridge(pipe: Any) -> SocketStream:
    """A stream over anything with the blocking `recv`, `sendall` and `close` of a socket."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry, args=(pipe, theirs), daemon=True, name="sandboxio-pipe-in").start()
    threading.Thread(target=_carry, args=(theirs, pipe), daemon=True, name="sandboxio-pipe-out").start()

    def close() -> None:
        for end in (theirs, pipe):
            with contextlib.suppress(Exception):  # whatever it is, it is being given up
                end.close()

    return SocketStream(ours, on_close=close)


def _carry(source: Any, target: Any) -> None:
    with contextlib.suppress(Exception):  # either end was closed, which the other end is told below
        while data := source.recv(CHUNK):
            target.sendall(data)
    with contextlib.suppress(Exception):
        target.shutdown(socket.SHUT_WR)
