"""Connections to the engine: unix, tcp, TLS, ssh and Windows pipes, all as byte streams."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import subprocess
from collections.abc import Callable
from typing import Final

import anyio
import anyio.to_thread

from sandboxio_docker.address import Address
from sandboxio_docker.errors import EngineTimeout, EngineUnreachable
from sandboxio_docker.stream import ByteStream, SocketStream
from sandboxio_docker.tls import TLSStream, client_context

__all__ = ["Transport"]

_BACKLOG_PAUSE: Final = 0.01


class Transport:
    """Opens connections to one engine. It holds no state of an event loop.

    Args:
        address: Where the engine is.
        connect_timeout: Seconds until a connection must stand.

    Example: `stream = await Transport(address).connect()`
    """

    def __init__(self, address: Address, *, connect_timeout: float = 15.0) -> None:
        self.address = address
        self._connect_timeout = connect_timeout
        self._tls_context: ssl.SSLContext | None = None

    async def connect(self) -> ByteStream:
        """Open a connection.

        Raises:
            EngineUnreachable: Nothing accepts a connection there.
            EngineTimeout: It did not stand in time.
        """
        try:
            with anyio.fail_after(self._connect_timeout):
                return await self._open()
        except TimeoutError as exc:
            raise EngineTimeout(f"a connection to {self.address.url}", self._connect_timeout) from exc
        except ssl.SSLError:
            raise
        except OSError as exc:
            raise EngineUnreachable(self.address.url, exc) from exc

    async def _open(self) -> ByteStream:
        match self.address.scheme:
            case "unix":
                return SocketStream(await _connect_unix(self.address.target))
            case "tcp":
                raw = SocketStream(await _connect_tcp(self.address.target, self.address.port))
                return raw if self.address.tls is None else await self._encrypt(raw)
            case "ssh":
                return await anyio.to_thread.run_sync(_open_ssh, self.address, abandon_on_cancel=False)
            case "npipe":
                from sandboxio_docker.npipe import open_pipe

                return await anyio.to_thread.run_sync(open_pipe, self.address.target)

    async def _encrypt(self, raw: SocketStream) -> TLSStream:
        try:
            if self._tls_context is None:
                assert self.address.tls is not None
                self._tls_context = client_context(self.address.tls)
            stream = TLSStream(raw, self._tls_context, self.address.target)
            await stream.handshake()
        except BaseException:
            raw.close()
            raise
        return stream


async def _connect_unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while True:
            try:
                sock.connect(path)
            except BlockingIOError:  # the engine's queue of connections is full
                await anyio.sleep(_BACKLOG_PAUSE)
            else:
                return sock
    except BaseException:
        sock.close()
        raise


async def _connect_tcp(host: str, port: int) -> socket.socket:
    failure: OSError | None = None
    for family, kind, protocol, _, where in await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(where)
            if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
                await anyio.wait_writable(sock)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        except BaseException:
            sock.close()
            raise
        if code == 0:
            return sock
        sock.close()
        failure = OSError(code, os.strerror(code))
    raise failure or OSError(errno.EHOSTUNREACH, f"{host} has no address")


def _open_ssh(address: Address) -> SocketStream:
    """Let the user's own ssh reach the engine, its standard streams being one end of a socket pair."""
    command = ["ssh", "-o", "BatchMode=yes"]
    if address.port:
        command += ["-p", str(address.port)]
    if address.user:
        command += ["-l", address.user]
    command += ["--", address.target, "docker", "system", "dial-stdio"]
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            child = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return SocketStream(ours, on_close=_ender(child))


def _ender(child: subprocess.Popen[bytes]) -> Callable[[], None]:
    def end() -> None:
        child.kill()
        child.wait()

    return end
