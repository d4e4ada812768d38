"""TLS over a socket stream, with the same promises: no loop, nothing lost by a cancellation."""

from __future__ import annotations

import contextlib
import ssl
import threading
from typing import Final

import anyio
import anyio.lowlevel

from sandboxio_docker.address import TLSFiles
from sandboxio_docker.stream import CHUNK, SocketStream

__all__ = ["TLSStream", "client_context"]

_SEND_LIMIT: Final = 64 * 1024


def client_context(files: TLSFiles) -> ssl.SSLContext:
    """A context that checks the engine against `files`. Blocking: reads them."""
    context = ssl.create_default_context(cafile=files.ca if files.verify else None)
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.cert and files.key:
        context.load_cert_chain(files.cert, files.key)
    return context


class TLSStream:
    """A `ByteStream` that encrypts what passes through a socket stream."""

    def __init__(self, raw: SocketStream, context: ssl.SSLContext, hostname: str) -> None:
        self._raw = raw
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
        self._unsent = bytearray()
        self._taken = 0
        self._decrypted: list[bytes] = []
        self._eof_sent = False
        self._lock = threading.RLock()  # a deadline is kept from a thread of its own

    async def handshake(self) -> None:
        """Agree on keys and check the engine's certificate.

        Raises:
            ssl.SSLError: It failed.
        """
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                self._feed(await self._raw.receive())
            else:
                await self._flush()
                return

    async def receive(self) -> bytes:
        """See `ByteStream.receive`."""
        await anyio.lowlevel.checkpoint()  # before anything is taken, so that nothing can be lost
        while True:
            data = self._decrypt()
            if data is not None:
                return data
            with contextlib.suppress(anyio.BrokenResourceError):  # reading on will tell
                self._flush_nowait()
            self._feed(await self._raw.receive())

    def receive_nowait(self) -> bytes | None:
        """See `ByteStream.receive_nowait`."""
        while True:
            data = self._decrypt()
            if data is not None:
                return data
            encrypted = self._raw.receive_nowait()
            if encrypted is None:
                return None
            self._feed(encrypted)

    async def send(self, data: memoryview) -> int:
        """See `ByteStream.send`."""
        await anyio.lowlevel.checkpoint()
        if not self._taken:
            try:
                with self._lock:
                    self._taken = self._ssl.write(data[:_SEND_LIMIT])
            except ssl.SSLError as exc:
                raise anyio.BrokenResourceError from exc
        await self._flush()
        taken, self._taken = self._taken, 0
        return taken

    async def send_eof(self) -> None:
        """See `ByteStream.send_eof`. It is a close_notify; the engine goes on sending after it."""
        if not self._eof_sent:
            self._eof_sent = True
            self._decrypt_ahead()
            with (
                self._lock,
                contextlib.suppress(ssl.SSLError),
            ):  # it wants the other side's, which comes much later
                self._ssl.unwrap()
        with contextlib.suppress(anyio.BrokenResourceError):
            await self._flush()

    def abort(self) -> None:
        """See `ByteStream.abort`."""
        self._raw.abort()

    def close(self) -> None:
        """See `ByteStream.close`."""
        self._raw.close()

    def _decrypt(self) -> bytes | None:
        try:
            with self._lock:
                return self._decrypted.pop(0) if self._decrypted else self._ssl.read(CHUNK)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _decrypt_ahead(self) -> None:
        """Empty what has arrived: OpenSSL refuses to close a direction over unread data."""
        with self._lock, contextlib.suppress(ssl.SSLError):
            while data := self._ssl.read(CHUNK):
                self._decrypted.append(data)

    def _feed(self, encrypted: bytes) -> None:
        with self._lock:
            if encrypted:
                self._incoming.write(encrypted)
            else:
                self._incoming.write_eof()

    def _flush_nowait(self) -> bool:
        with self._lock:
            self._unsent += self._outgoing.read()
            while self._unsent:
                sent = self._raw.send_nowait(self._unsent)
                if sent is None:
                    return False
                del self._unsent[:sent]
            return True

    async def _flush(self) -> None:
        while not self._flush_nowait():
            await self._raw.wait_writable()
