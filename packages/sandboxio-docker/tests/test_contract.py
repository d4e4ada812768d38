"""The contract suite on a real Docker Engine, with three images."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import docker
import pytest
from anyio import to_thread
from docker_suite.relay import relay

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.audit import AuditConfig
from sandboxio.models import Resources
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite import BackendContractSuite, Canary, replaced_trees
from sandboxio.testing.suite.cancellation import CancellationTests
from sandboxio.testing.suite.deadlines import DeadlineTests
from sandboxio.testing.suite.execution import ExecutionTests
from sandboxio.testing.suite.files import FilesTests
from sandboxio.testing.suite.output import OutputTests
from sandboxio.testing.suite.resources import ResourceTests
from sandboxio.testing.suite.streaming import StreamingTests
from sandboxio.testing.suite.transfers import TransferTests
from sandboxio_docker import DockerBackend, DockerConfig
from sandboxio_docker.address import Address
from sandboxio_docker.reaper import reaper
from sandboxio_docker.transport import Transport

pytestmark = pytest.mark.docker

MIB = 1024 * 1024


class DockerProbes:
    """What only an owner of the engine can see and do."""

    allowlist_supported: ClassVar[bool] = False
    engine_config: ClassVar[Mapping[str, Any]] = {}

    def make_backend(self, audit: AuditConfig) -> DockerBackend:
        return DockerBackend(DockerConfig(audit=audit, **self.engine_config))

    async def count_sandboxes(self, backend: Backend, metadata: Mapping[str, str]) -> int:
        labels = [f"{key}={value}" for key, value in metadata.items()]
        return await to_thread.run_sync(self._count, labels)

    def _count(self, labels: list[str]) -> int:
        api = docker.from_env().api
        ours = [f"sandboxio.process={reaper().process_id}"]
        containers = api.containers(all=True, filters={"label": labels})
        volumes = api.volumes(filters={"label": ours, "dangling": True})["Volumes"] or []
        networks = api.networks(filters={"label": ours})
        return len(containers) + len(volumes) + len(networks)

    async def expire(self, sandbox: AsyncSandbox) -> None:
        await to_thread.run_sync(docker.from_env().api.kill, sandbox.id)

    async def provider_labels(self, sandbox: AsyncSandbox) -> Mapping[str, str]:
        found = await to_thread.run_sync(docker.from_env().api.inspect_container, sandbox.id)
        labels: dict[str, str] = found["Config"]["Labels"]
        return labels

    async def provider_view(self, sandbox: AsyncSandbox) -> str:
        api = docker.from_env().api
        found = await to_thread.run_sync(api.inspect_container, sandbox.id)
        executions = [api.exec_inspect(one) for one in found["ExecIDs"] or ()]
        return json.dumps([found, executions])

    async def applied_resources(self, sandbox: AsyncSandbox) -> Resources:
        """The memory cap is what the engine applies less the disk that was asked for beside it."""
        found = await to_thread.run_sync(docker.from_env().api.inspect_container, sandbox.id)
        host, labels = found["HostConfig"], found["Config"]["Labels"]
        sizes = await sandbox.run("df -k /work /tmp /dev/shm | awk 'NR > 1 { sum += $2 } END { print sum }'")
        disk_mb = int(sizes.stdout) // 1024
        applied_mb, asked_mb = host["Memory"] // MIB, int(labels["sandboxio.memory_mb"])
        assert host["MemorySwap"] == host["Memory"]
        assert applied_mb in (asked_mb, asked_mb + disk_mb)
        return Resources(cpu=host["NanoCpus"] / 1e9, memory_mb=asked_mb, disk_mb=disk_mb)

    @asynccontextmanager
    async def slow_create(self, backend: Backend) -> AsyncIterator[None]:
        with rerouted(backend, delay=0.5):
            yield

    @asynccontextmanager
    async def failing_kill(self, sandbox: AsyncSandbox) -> AsyncIterator[None]:
        with rerouted(sandbox, refuse=b"DELETE"):
            yield

    @asynccontextmanager
    async def provider_failure(self, backend: Backend) -> AsyncIterator[None]:
        with rerouted(backend, missing=True):
            yield

    @asynccontextmanager
    async def canary(self) -> AsyncIterator[Canary]:
        with counting_server() as canary:
            yield canary

    @asynccontextmanager
    async def hostile_archive(self, sandbox: AsyncSandbox, path: str, archive: bytes) -> AsyncIterator[None]:
        async with replaced_trees(sandbox, archive):
            yield


@contextmanager
def rerouted(
    target: Backend | AsyncSandbox, *, refuse: bytes = b"", delay: float = 0.0, missing: bool = False
) -> Iterator[None]:
    """Send a backend's, or a sandbox's, calls to the engine through a relay that misbehaves."""
    if isinstance(target, DockerBackend):
        engine = target._provisioner._engine
    else:
        assert isinstance(target, Sandbox)
        engine = target._guard.driver._container.engine
    assert engine is not None
    real = engine.transport
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "engine.sock")
        upstream = real.address.target or "/var/run/docker.sock"
        engine.transport = Transport(Address("unix", str(path)))
        try:
            if missing:
                yield
            else:
                with relay(path, upstream, refuse=refuse, delay=delay):
                    yield
        finally:
            engine.transport = real


@contextmanager
def counting_server() -> Iterator[Canary]:
    """A server on the bridge's own address, which containers with open egress reach."""
    networks = docker.from_env().api.inspect_network("bridge")
    host = networks["IPAM"]["Config"][0]["Gateway"]
    hits = 0
    listener = socket.create_server((host, 0))
    stopping = threading.Event()

    def accept() -> None:
        nonlocal hits
        listener.settimeout(0.1)
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                hits += 1
                connection.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield Canary(host, listener.getsockname()[1], lambda: hits)
    finally:
        stopping.set()
        thread.join()
        listener.close()


class TestDockerContract(DockerProbes, BackendContractSuite):
    """All of it, on an image with python3."""


class TestShellOnlyImage(
    DockerProbes,
    ExecutionTests,
    DeadlineTests,
    CancellationTests,
    OutputTests,
    StreamingTests,
    FilesTests,
    TransferTests,
):
    """The rows that need no python3, on an image with nothing but busybox."""

    template = "sandboxio/busybox:test"
    anyio_backends: ClassVar[tuple[str, ...]] = ("asyncio",)
    test_cancelling_run_code_ends_the_whole_tree = None
    test_code_that_runs_too_long_is_an_execution_timeout = None
    test_a_timeout_keeps_what_code_had_written = None


class TestImageWithItsOwnUser(DockerProbes, ExecutionTests, FilesTests, TransferTests, ResourceTests):
    """The rows on commands, files and caps, on an image whose user has a name and is not root."""

    template = "sandboxio/user:test"
    anyio_backends: ClassVar[tuple[str, ...]] = ("asyncio",)
