"""An engine that is none: it answers pings, and everything else as it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandboxio_docker.address import Address

PONG = b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def fake_engine(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[Address]:
    """An engine on a unix socket that answers pings, and every other request with `answer`."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    open_connections: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            open_connections.append(connection)
            request = connection.recv(65536)
            if b"_ping" in request:
                connection.sendall(PONG)
                connection.close()
            else:
                answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address("unix", str(path))
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        for connection in open_connections:
            connection.close()
