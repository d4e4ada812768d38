"""One live container as a driver: the ports, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sandboxio.adapter.driver import CodePort, FilePort, ProcessPort
from sandboxio.adapter.threads import BlockingCalls
from sandboxio.errors import SandboxError
from sandboxio.models import Capability, IsolationTier, Resources
from sandboxio_docker.container import Container
from sandboxio_docker.errors import translate
from sandboxio_docker.files import DockerFiles
from sandboxio_docker.hardening import HOME
from sandboxio_docker.managed import remove_sandbox
from sandboxio_docker.oom import OomWatch
from sandboxio_docker.process import DockerProcesses
from sandboxio_docker.reaper import reaper
from sandboxio_docker.user import User

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as NativeContainer

__all__ = ["ALL_CAPABILITIES", "DockerDriver"]

_FILES: Final = Capability.FILESYSTEM | Capability.UPLOAD_DOWNLOAD

ALL_CAPABILITIES: Final = (
    Capability.RUN_COMMAND
    | Capability.RUN_CODE
    | Capability.STREAMING
    | Capability.NETWORK_POLICY
    | Capability.RAW_OUTPUT
    | _FILES
)


class DockerDriver:
    """The driver of one container.

    Args:
        container: The container.
        oom: What knows about its kills for want of memory.
        threads: Where blocking calls go.
        creation_id: By which the reaper knows it.
        template: The image's name.
        limits: The caps in force.
        pids_limit: The cap on processes.
        user: Who runs in it.
        env: The caller's variables.
        has_shell: Whether it has a shell; without one there are no files and no text commands.
        tier: What isolates it: under gVisor the kernel keeps no execution's number, and the engine's
            archive API does not reach what the sandbox sees.
    """

    def __init__(
        self,
        container: Container,
        oom: OomWatch,
        threads: BlockingCalls,
        *,
        creation_id: str,
        template: str,
        limits: Resources,
        pids_limit: int,
        user: User,
        env: Mapping[str, str],
        has_shell: bool,
        tier: IsolationTier,
    ) -> None:
        self._container = container
        self._oom = oom
        self._threads = threads
        self._creation_id = creation_id
        self._template = template
        self._limits = limits
        self._client: DockerClient | None = None
        self._native: NativeContainer | None = None
        on_hosts_kernel = tier is not IsolationTier.GVISOR
        bulk = on_hosts_kernel and container.engine.transport.address.scheme == "unix"
        self._processes = DockerProcesses(
            container,
            oom,
            pids_limit=pids_limit,
            has_shell=has_shell,
            env=env,
            numbered=on_hosts_kernel,
            key=creation_id,
            destroy=self.destroy,
        )
        self._files = (
            DockerFiles(self._processes, user, limits.disk_mb, container if bulk else None)
            if has_shell
            else None
        )

    @property
    def capabilities(self) -> Capability:
        """What this container can do."""
        return ALL_CAPABILITIES if self._files is not None else ALL_CAPABILITIES & ~_FILES

    @property
    def processes(self) -> ProcessPort:
        """Commands."""
        return self._processes

    @property
    def code(self) -> CodePort | None:
        """None of its own: code is fed to an interpreter."""
        return None

    @property
    def files(self) -> FilePort | None:
        """Files, where there is a shell."""
        return self._files

    @property
    def home(self) -> str:
        """The working folder."""
        return HOME

    @property
    def template(self) -> str:
        """The image's name."""
        return self._template

    @property
    def limits(self) -> Resources:
        """The caps in force."""
        return self._limits

    @property
    def native(self) -> Any:
        """The container as an object of docker-py, outside this library's version promise. Blocking."""
        if self._native is None:
            import docker

            address = self._container.engine.transport.address
            self._client = docker.DockerClient(**address.sdk_arguments(), version="auto")
            self._native = self._client.containers.get(self._container.id)
        return self._native

    async def alive(self) -> bool:
        """Whether the container runs."""
        return await self._container.running()

    async def destroy(self) -> None:
        """Remove the container and its volumes."""
        self._processes.abort()
        await remove_sandbox(self._container, self._creation_id)
        self._oom.close()
        await self._threads.run(reaper().drop, self._creation_id)

    async def detach(self) -> None:
        """Have the reaper leave it alone."""
        await self._threads.run(reaper().keep, self._creation_id)

    async def aclose(self) -> None:
        """Close the connection for events, and docker-py's if there is one."""
        self._oom.close()
        client, self._client, self._native = self._client, None, None
        if client is not None:
            client.close()

    def translate(self, exc: Exception) -> SandboxError | None:
        """See `sandboxio_docker.errors.translate`."""
        return translate(exc)
