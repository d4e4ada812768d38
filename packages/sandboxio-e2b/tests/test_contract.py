"""The contract suite through the real E2B SDK: against the local server, and against the service."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import ClassVar

import pytest
from anyio import to_thread
from e2b_server.faults import Fault, Refuse, Slow
from e2b_server.server import E2BServer

from sandboxio.audit import AuditConfig
from sandboxio.models import Resources
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite import BackendContractSuite, Canary, replaced_trees
from sandboxio_e2b import E2BBackend, E2BConfig

pytestmark = pytest.mark.e2b

LIVE = os.environ.get("SBX_E2B_LIVE") == "1"
REACH = """
import socket
connection = socket.create_connection(({host!r}, {port}), timeout=3)
connection.sendall(b"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n")
if b"200" in connection.recv(100):
    print("reached")
"""


class E2BSuite(BackendContractSuite):
    """What holds of E2B wherever it is."""

    anyio_backends: ClassVar[tuple[str, ...]] = ("asyncio",)
    resource_caps_supported: ClassVar[bool] = False
    allowlist_ports_supported: ClassVar[bool] = False
    blocked_code_size: ClassVar[int] = 1  # a kernel is there before the variables of its cell

    def make_backend(self, audit: AuditConfig) -> E2BBackend:
        return E2BBackend(E2BConfig(audit=audit))

    def cmd_connect(self, host: str, port: int) -> Sequence[str]:
        """E2B's filter takes every connection and closes the ones that it refuses, so an answer counts."""
        return ["python3", "-c", self.code_connect(host, port)]

    def code_connect(self, host: str, port: int) -> str:
        return REACH.format(host=host, port=port)

    @asynccontextmanager
    async def missing_credential(self) -> AsyncIterator[tuple[Backend, str]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("E2B_API_KEY")
            yield E2BBackend(), "E2B_API_KEY"

    async def provider_labels(self, sandbox: AsyncSandbox) -> Mapping[str, str]:
        labels: Mapping[str, str] = (await sandbox.native.get_info()).metadata
        return labels

    async def provider_view(self, sandbox: AsyncSandbox) -> str:
        info, processes = await sandbox.native.get_info(), await sandbox.native.commands.list()
        return repr((info, processes))

    async def applied_resources(self, sandbox: AsyncSandbox) -> Resources:
        info = await sandbox.native.get_info()
        disk = await sandbox.run("df -m / | awk 'NR == 2 { print $2 }'")
        return Resources(cpu=info.cpu_count, memory_mb=info.memory_mb, disk_mb=int(disk.stdout))

    @asynccontextmanager
    async def hostile_archive(self, sandbox: AsyncSandbox, path: str, archive: bytes) -> AsyncIterator[None]:
        async with replaced_trees(sandbox, archive):
            yield


@pytest.mark.docker
@pytest.mark.skipif(LIVE, reason="SBX_E2B_LIVE=1 runs the suite against the service instead")
class TestE2BContract(E2BSuite):
    """All of it, against the local server."""

    server: ClassVar[E2BServer]
    canary_address: ClassVar[str]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _served(cls, e2b_server: E2BServer, canary_address: str) -> None:
        cls.server, cls.canary_address = e2b_server, canary_address

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, _served: None, events: object) -> Backend:
        cls.backend_under_test = cls().make_backend(AuditConfig(sinks=(events,)))  # type: ignore[arg-type]
        return cls.backend_under_test

    async def count_sandboxes(self, backend: Backend, metadata: Mapping[str, str]) -> int:
        return len(await to_thread.run_sync(self.server.sandboxes, metadata))

    async def expire(self, sandbox: AsyncSandbox) -> None:
        await to_thread.run_sync(self.server.expire, sandbox.id)

    @asynccontextmanager
    async def slow_create(self, backend: Backend) -> AsyncIterator[None]:
        with self.server.misbehave(Fault("create", Slow(after=0.5))):
            yield

    @asynccontextmanager
    async def failing_kill(self, sandbox: AsyncSandbox) -> AsyncIterator[None]:
        with self.server.misbehave(Fault("kill", Refuse(500))):
            yield

    @asynccontextmanager
    async def provider_failure(self, backend: Backend) -> AsyncIterator[None]:
        """Nothing listens where new clients look, and what the sandboxes' own clients reach is down."""
        with pytest.MonkeyPatch.context() as patch, self.server.misbehave(Fault("any", Refuse(503))):
            patch.setenv("E2B_API_URL", "http://127.0.0.1:1")
            yield

    @asynccontextmanager
    async def canary(self) -> AsyncIterator[Canary]:
        with counting_server(self.canary_address) as canary:
            yield canary


@pytest.mark.skipif(not LIVE, reason="the service is asked only with SBX_E2B_LIVE=1")
class TestE2BService(E2BSuite):
    """What can be seen from outside, against the service; E2B_API_KEY pays for it."""

    short_lifetime: ClassVar[float] = 15.0

    async def count_sandboxes(self, backend: Backend, metadata: Mapping[str, str]) -> int:
        assert isinstance(backend, E2BBackend)
        found = await backend.list_managed()
        return sum(metadata.items() <= sandbox.metadata.items() for sandbox in found)

    async def expire(self, sandbox: AsyncSandbox) -> None:
        await type(sandbox.native).kill(sandbox.id)


@contextmanager
def counting_server(address: str) -> Iterator[Canary]:
    """An HTTP server on port 80 of an address of this host."""
    hits = 0
    listener = socket.create_server((address, 80))
    stopping = threading.Event()

    def accept() -> None:
        nonlocal hits
        listener.settimeout(0.1)
        while not stopping.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                hits += 1
                with connection:
                    connection.settimeout(2)
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield Canary("canary.test", 80, lambda: hits)
    finally:
        stopping.set()
        thread.join()
        listener.close()
