"""The E2B backend: what the registry makes and callers ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from sandboxio.adapter.provision import Translated, attach, provision
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.diagnosis import Check
from sandboxio.models import Capability, IsolationTier, ManagedSandbox, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.redaction import redactor_for
from sandboxio_e2b import managed
from sandboxio_e2b.config import E2BConfig
from sandboxio_e2b.diagnosis import examine
from sandboxio_e2b.errors import translate
from sandboxio_e2b.provisioner import E2BProvisioner

__all__ = ["MICROVM_SOURCE", "E2BBackend"]

MICROVM_SOURCE: Final = (
    "the documentation in E2B's SDK 2.63.0 (read 2026-11-30): a sandbox is a guest with a memory "
    "of its own, which boots from its own disk"
)


class E2BBackend:
    """Sandboxes that are microVMs of E2B, over its own SDK. asyncio only.

    Args:
        config: The configuration; `None` for the defaults. Nothing is contacted yet.

    Example: `sandboxio.create(E2BBackend(E2BConfig(template="my-template")))`
    """

    config_type: ClassVar[type[E2BConfig]] = E2BConfig

    def __init__(self, config: E2BConfig | None = None) -> None:
        self.config = config or E2BConfig()
        self._provisioner = E2BProvisioner(self.config)

    def __repr__(self) -> str:
        return f"E2BBackend({self.config!r})"

    @property
    def name(self) -> str:
        """`e2b`."""
        return self._provisioner.name

    @property
    def capabilities(self) -> Capability:
        """What its sandboxes can do; those of a template without a code interpreter keep no contexts."""
        return self._provisioner.capabilities

    @property
    def isolation(self) -> IsolationTier:
        """MICROVM; `MICROVM_SOURCE` says what that rests on."""
        return IsolationTier.MICROVM

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
        """See `Backend.create`."""
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

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        """See `ReapableBackend.list_managed`."""
        with _translated("listing sandboxes"):
            return await managed.list_managed(self._provisioner.options(), self.name)

    async def kill_managed(self, sandbox_id: str) -> None:
        """See `ReapableBackend.kill_managed`."""
        with _translated("ending a sandbox"):
            await managed.kill_managed(sandbox_id, self._provisioner.options())

    async def diagnose(self) -> tuple[Check, ...]:
        """See `DiagnosableBackend.diagnose`."""
        return await examine(self._provisioner)


def _translated(doing: str) -> Translated:
    return Translated(translate, redactor_for("e2b"), doing)
