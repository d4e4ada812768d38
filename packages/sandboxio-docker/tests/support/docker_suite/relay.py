"""An engine that misbehaves: a relay in front of the real one that delays, refuses or answers for it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

_ANSWER = b'{"message": "the relay says no"}'
_REFUSAL = (
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
    b"Content-Length: " + str(len(_ANSWER)).encode() + b"\r\nConnection: close\r\n\r\n" + _ANSWER
)


class EngineRelay:
    """Passes connections on to a real engine's unix socket.

    Args:
        path: Where the relay listens.
        upstream: The real engine's socket.
        refuse: The beginning of requests that are answered with a failure, such as `DELETE`.
        delay: Seconds by which the rest of a request is held back.
    """

    def __init__(self, path: Path, upstream: str, *, refuse: bytes = b"", delay: float = 0.0) -> None:
        self._upstream = upstream
        self._refuse = refuse
        self._delay = delay
        self._stopping = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._listener.settimeout(0.1)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop listening."""
        self._stopping.set()
        self._threads[0].join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(None)
            head = client.recv(65536)
            if self._refuse and head.startswith(self._refuse):
                client.sendall(_REFUSAL)
                return
            self._stopping.wait(self._delay)
            with socket.socket(socket.AF_UNIX) as engine:
                engine.connect(self._upstream)
                engine.sendall(head)
                back = threading.Thread(target=_copy, args=(engine, client), daemon=True)
                back.start()
                _copy(client, engine)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relay(path: Path, upstream: str, *, refuse: bytes = b"", delay: float = 0.0) -> Iterator[None]:
    """A relay for as long as the block runs."""
    running = EngineRelay(path, upstream, refuse=refuse, delay=delay)
    try:
        yield
    finally:
        running.close()
