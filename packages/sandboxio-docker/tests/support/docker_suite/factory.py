"""Sandboxes of the Docker backend that end with the test they were made for."""

from __future__ import annotations

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker import DockerBackend, DockerConfig


class SandboxFactory:
    """Creates sandboxes, and ends those it created."""

    def __init__(self) -> None:
        self._made: list[Sandbox] = []

    async def __call__(
        self,
        *,
        template: str | None = None,
        config: DockerConfig | None = None,
        resources: Resources | None = None,
        network: NetworkPolicy | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Sandbox:
        sandbox = await DockerBackend(config).create(
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=None,
            timeout=timeout,
            metadata={"suite": "docker"},
        )
        self._made.append(sandbox)
        return sandbox

    async def kill_all(self) -> None:
        for sandbox in self._made:
            await sandbox.kill()
