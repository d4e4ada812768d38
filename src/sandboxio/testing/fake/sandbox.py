"""One virtual sandbox: its files, processes and network, what it was made with, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sandboxio.adapter.provision import CreateRequest
from sandboxio.models import Resources
from sandboxio.testing.fake.clock import VirtualClock
from sandboxio.testing.fake.machine.kernel import Kernel
from sandboxio.testing.fake.machine.tree import FileTree
from sandboxio.testing.fake.network import FakeNetwork, FakeServer
from sandboxio.testing.fake.shell.launch import run_command

__all__ = ["DEFAULT_LIMITS", "HOME", "CodeContext", "VirtualSandbox"]

HOME: Final = "/work"
DEFAULT_LIMITS: Final = Resources(cpu=1.0, memory_mb=1024, disk_mb=512)
_FOLDERS: Final = (HOME, "/tmp", "/etc", "/bin", "/usr/bin")  # noqa: S108 -- paths of the virtual tree
_BASE: Final = {"PATH": "/usr/bin:/bin", "HOME": HOME}
_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)


class CodeContext:
    """A context of code: its variables, who uses it, and whether it lost its state."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.busy = False
        self.lost = False


class VirtualSandbox:
    """What the fake's provider holds of one sandbox."""

    def __init__(
        self,
        sandbox_id: str,
        request: CreateRequest,
        clock: VirtualClock,
        servers: Mapping[tuple[str, int], FakeServer],
        denied: Callable[[str, str, int], None],
    ) -> None:
        self.id = sandbox_id
        self.template = request.template or "fake"
        self.labels = request.labels
        self.metadata = dict(request.metadata)
        self.policy = request.network
        self.variables = _BASE | dict(request.env)
        asked = request.resources
        self.limits = Resources(
            cpu=asked.cpu or DEFAULT_LIMITS.cpu,
            memory_mb=asked.memory_mb or DEFAULT_LIMITS.memory_mb,
            disk_mb=asked.disk_mb or DEFAULT_LIMITS.disk_mb,
        )
        self.lifetime = request.timeout
        self.created_at = clock()
        self.expires_at = self.created_at + request.timeout
        self.ended = False
        self.contexts: dict[tuple[str, str], CodeContext] = {}
        self.archives: dict[str, bytes] = {}
        assert self.limits.memory_mb is not None
        assert self.limits.disk_mb is not None
        self.tree = FileTree(self.limits.disk_mb, clock)
        for folder in _FOLDERS:
            self.tree.make_folder(folder, parents=True)
        network = FakeNetwork(request.network, servers, lambda host, port: denied(sandbox_id, host, port))
        self.kernel = Kernel(
            clock,
            self.tree,
            network,
            memory_mb=self.limits.memory_mb,
            ends_at=self.expires_at,
            exec=run_command,
        )

    def __repr__(self) -> str:
        return f"<VirtualSandbox {self.id} {'ended' if self.ended else 'running'}>"

    @property
    def created_on(self) -> datetime:
        """The creation as a date; the fake's time starts in 2025."""
        return _EPOCH + timedelta(seconds=self.created_at)

    @property
    def expires_on(self) -> datetime:
        """The end of its lifetime as a date."""
        return _EPOCH + timedelta(seconds=self.expires_at)

    def end(self) -> None:
        """End it with all of its processes."""
        self.ended = True
        self.kernel.shut_down()
