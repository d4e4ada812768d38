"""A machine: one Docker sandbox of ours with an agent in it that owns processes, files and kernels."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ConnectError
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker import DockerBackend, DockerConfig

from .egress import Filter, unavailable
from .guest import Guest
from .guest_files import GuestFiles
from .guest_processes import Processes
from .kernels import GuestKernels
from .ports import Egress, Machine, MachineError, Process, ProcessConfig

__all__ = ["DockerMachine", "DockerMachines", "boot"]

_CONFIG: Final = DockerConfig(pids_limit=512)
_RESOURCES: Final = Resources(cpu=2, memory_mb=1024, disk_mb=512)
_MARGIN_SECONDS: Final = 60.0
_END_TRIES: Final = 6


class DockerMachine:
    """See `Machine`. It belongs to the event loop that it was booted in."""

    def __init__(self, sandbox: Sandbox, guest: Guest, filter_: Filter | None, egress: Egress) -> None:
        self._sandbox = sandbox
        self._guest = guest
        self._filter = filter_
        self._egress = egress
        self._processes = Processes(guest)
        self.files = GuestFiles(guest)
        self.kernels = GuestKernels(guest)

    @property
    def home(self) -> str:
        """See `Machine.home`."""
        return str(self._sandbox._guard.driver.home)

    @property
    def id(self) -> str:
        """The container's id."""
        return self._sandbox.id

    @property
    def processes(self) -> Mapping[int, Process]:
        """See `Machine.processes`."""
        return self._processes.live

    async def start(self, config: ProcessConfig, *, stdin: bool) -> Process:
        """See `Machine.start`."""
        return await self._processes.start(config, stdin=stdin)

    async def write_hosts(self, content: bytes) -> None:
        """See `Machine.write_hosts`. The container shares this file with its host.

        Raises:
            MachineError: This process is not root on the engine's own host.
        """
        driver: Any = self._sandbox._guard.driver
        inspected = await driver._container.inspect()
        try:
            Path(inspected["HostsPath"]).write_bytes(content)  # in place, as the container has it open
        except OSError as error:
            raise MachineError("permission_denied", f"/etc/hosts: {error.strerror}") from error

    async def set_egress(self, egress: Egress) -> None:
        """See `Machine.set_egress`.

        Raises:
            MachineError: The machine was booted without any network, and has none to open.
        """
        if self._filter is None:
            if egress == self._egress or _closed(egress):
                return
            raise MachineError("failed_precondition", _why_fixed(self._egress))
        await self._filter.apply(egress)

    async def shutdown(self) -> None:
        """See `Machine.shutdown`. Idempotent."""
        await self._guest.close()
        await self._processes.close()
        if self._filter is not None:
            await self._filter.close()
        await _end(self._sandbox)


class DockerMachines:
    """Boots machines; see `Booting`.

    Args:
        names: Addresses of names that no resolver knows. A machine finds them in its `/etc/hosts` while
            its egress is open; one that may reach listed hosts only has to be told them.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self._backend = DockerBackend(_CONFIG)

    async def __call__(
        self, *, template: str, envs: Mapping[str, str], egress: Egress, lifetime: float
    ) -> Machine:
        """Boot one. All templates are the same image.

        Raises:
            MachineError: Its egress cannot be enforced on this host.
        """
        narrowed = not egress.open and not _closed(egress)
        if narrowed and (problem := unavailable()):
            raise MachineError("unimplemented", f"egress cannot be narrowed down: {problem}")
        sandbox = await self._backend.create(
            template=None,
            resources=_RESOURCES,
            network=NetworkPolicy() if _closed(egress) else NetworkPolicy("allow"),
            env=None,
            secrets=None,
            timeout=lifetime + _MARGIN_SECONDS,
            metadata={"template": template},
        )
        filter_ = None
        try:
            driver: Any = sandbox._guard.driver
            container = driver._container
            if not _closed(egress) and unavailable() is None:
                filter_ = Filter(await container.inspect(), self._names)
                await filter_.apply(egress)
            guest = await Guest.start(container, driver.home, envs)
        except BaseException:
            if filter_ is not None:
                await filter_.close()
            await _end(sandbox)
            raise
        return DockerMachine(sandbox, guest, filter_, egress)


boot = DockerMachines()
"""Boots machines that know no extra names."""


def _closed(egress: Egress) -> bool:
    return not (egress.open or egress.hosts or egress.addresses)


def _why_fixed(egress: Egress) -> str:
    if _closed(egress):
        return "the machine was created without any network"
    return f"egress cannot be narrowed down: {unavailable()}"


async def _end(sandbox: Sandbox) -> None:
    """End it, with patience: an engine that removes fifty containers at once takes its time."""
    for attempt in range(_END_TRIES):
        try:
            await sandbox.kill()
        except ConnectError:
            if attempt == _END_TRIES - 1:
                raise
            await asyncio.sleep(0.5)
        else:
            return
