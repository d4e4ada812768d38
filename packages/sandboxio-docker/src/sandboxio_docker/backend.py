"""The Docker backend: what the registry makes and callers ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sandboxio.adapter.provision import Translated, attach, provision
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.diagnosis import Check
from sandboxio.models import Capability, IsolationTier, ManagedSandbox, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.redaction import Redactor
from sandboxio_docker import managed
from sandboxio_docker.config import DockerConfig
from sandboxio_docker.diagnosis import examine
from sandboxio_docker.errors import translate
from sandboxio_docker.provisioner import DockerProvisioner

__all__ = ["DockerBackend"]


class DockerBackend:
    """Sandboxes that are hardened containers of a Docker engine.

    Args:
        config: The configuration; `None` for the defaults. Nothing is contacted yet.

    Example: `sandboxio.create(DockerBackend(DockerConfig(runtime="runsc")))`
    """

    config_type: ClassVar[type[DockerConfig]] = DockerConfig

    def __init__(self, config: DockerConfig | None = None) -> None:
        self.config = config or DockerConfig()
        self._provisioner = DockerProvisioner(self.config)

    def __repr__(self) -> str:
        return f"DockerBackend({self.config!r})"

    @property
    def name(self) -> str:
        """`docker`."""
        return self._provisioner.name

    @property
    def capabilities(self) -> Capability:
        """What its sandboxes can do; those of an image without a shell have no files."""
        return self._provisioner.capabilities

    @property
    def isolation(self) -> IsolationTier:
        """CONTAINER, unless the engine was asked and has answered more."""
        facts = self._provisioner.known_facts
        return IsolationTier.CONTAINER if facts is None else facts.runtime_tier(self.config.runtime)[1]

    async def create(
        self,
        *,
        template: str | None,
        resources: Resources | None,
        network: NetworkPolicy | None,
        env: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None,
        timeout: float,
        metadata: Mapping[str, str] | None,
    ) -> Sandbox:
        """See `Backend.create`. An image that is missing is pulled first."""
        return await provision(
            self._provisioner,
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
        )

    async def connect(self, sandbox_id: str) -> Sandbox:
        """See `Backend.connect`."""
        return await attach(self._provisioner, sandbox_id)

    async def verify_isolation(self) -> IsolationTier:
        """Ask the engine which tier `create` will give.

        Raises:
            ConfigurationError: The runtime does not exist, or caps do not hold under it.
            ConnectError: The engine does not answer.
        """
        with _translated("asking for the tier"):
            return (await self._provisioner.facts()).runtime_tier(self.config.runtime)[1]

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        """See `ReapableBackend.list_managed`."""
        with _translated("listing sandboxes"):
            return await managed.list_managed(await self._provisioner.engine(), self.name)

    async def kill_managed(self, sandbox_id: str) -> None:
        """See `ReapableBackend.kill_managed`."""
        with _translated("ending a sandbox"):
            await managed.kill_managed(await self._provisioner.engine(), sandbox_id)

    async def diagnose(self) -> tuple[Check, ...]:
        """See `DiagnosableBackend.diagnose`."""
        return await examine(self._provisioner)


def _translated(doing: str) -> Translated:
    return Translated(translate, Redactor(), doing)
