"""From a request to a microVM that runs, and from an id to one that does."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import httpx
from e2b.exceptions import AuthenticationException, RateLimitException, SandboxException
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.provision import LABEL_CREATION, CreateRequest, Launched
from sandboxio.audit import AuditConfig
from sandboxio.errors import CapabilityNotSupported, ConfigurationError, SandboxError, SandboxGone
from sandboxio.models import Capability, IsolationTier, Resources
from sandboxio_e2b.account import api_options
from sandboxio_e2b.config import E2BConfig
from sandboxio_e2b.driver import ALL_CAPABILITIES, E2BDriver
from sandboxio_e2b.egress import name_hosts, network_options
from sandboxio_e2b.errors import creation_error, translate
from sandboxio_e2b.managed import callers_metadata, describe, kill_created
from sandboxio_e2b.probe import probe

__all__ = ["E2BProvisioner"]

_REQUEST_SECONDS: Final = 20.0
_QUOTED_BADLY: Final = frozenset("'\\\r\n")


@dataclass(frozen=True, slots=True)
class Plan:
    """What `prepare` found out.

    Attributes:
        template: The template's name or id.
        options: How to call the SDK.
        network: The network policy in E2B's terms.
    """

    template: str
    options: Mapping[str, Any]
    network: Mapping[str, Any]


class E2BProvisioner:
    """The provisioning half of the backend; see `sandboxio.adapter.provision.Provisioner`.

    Args:
        config: The configuration.
    """

    def __init__(self, config: E2BConfig) -> None:
        self.config = config
        self._unanswered: set[str] = set()
        self._refused: set[str] = set()

    @property
    def name(self) -> str:
        """`e2b`."""
        return E2BConfig.backend_name

    @property
    def capabilities(self) -> Capability:
        """What a sandbox usually can do."""
        return ALL_CAPABILITIES

    @property
    def audit(self) -> AuditConfig:
        """Where records of operations go."""
        return self.config.audit

    @property
    def create_timeout(self) -> float:
        """Seconds that creating may take."""
        return self.config.create_timeout

    def options(self) -> dict[str, Any]:
        """How to call the SDK.

        Raises:
            AuthError: There is no key.
            ConfigurationError: The event loop is not asyncio's, or the SDK is in its debug mode.
        """
        _require_asyncio()
        return api_options(self.config, request_timeout=_REQUEST_SECONDS)

    async def prepare(self, request: CreateRequest) -> Plan:
        """Refuse what E2B cannot honour. Nothing is sent."""
        template = request.template or self.config.template or AsyncSandbox.default_template
        if request.resources != Resources():
            raise CapabilityNotSupported(
                f"the E2B template {template!r} fixes the caps of its sandboxes, so Resources are refused",
                hint="leave resources out, and build a template with the CPUs and the memory that you need",
            )
        return Plan(
            template, self.options(), network_options(request.network, allow_dns=self.config.allow_dns)
        )

    async def launch(self, request: CreateRequest, prepared: Plan) -> Launched:
        """Create, and ask the sandbox about itself."""
        options: dict[str, Any] = {**prepared.options, **prepared.network}
        options["request_timeout"] = self.create_timeout
        self._unanswered.add(request.creation_id)
        lifetime = Lifetime(request.timeout)  # from before the request: E2B may count from its arrival
        try:
            native = await AsyncSandbox.create(
                template=prepared.template,
                timeout=math.ceil(request.timeout),
                metadata=request.labels,
                envs=_provider_env(request.env),
                lifecycle={"on_timeout": "kill"},
                idempotency_key=request.creation_id,
                **options,
            )
        except Exception as exc:
            if _made_nothing(exc):
                self._unanswered.discard(request.creation_id)
                self._refused.add(request.creation_id)
            error = creation_error(exc)
            if error is None:
                raise
            raise error from exc
        self._unanswered.discard(request.creation_id)
        native.connection_config.request_timeout = _REQUEST_SECONDS
        if request.network.rules and not self.config.allow_dns:
            await name_hosts(native, request.network)
        return await self._operate(
            native, prepared.template, request.creation_id, lifetime, request.metadata, request.env
        )

    async def discard(self, request: CreateRequest) -> None:
        """End whatever carries the creation id, and wait a little for what may still appear."""
        if request.creation_id in self._refused:
            self._refused.discard(request.creation_id)
            return
        answered = request.creation_id not in self._unanswered
        self._unanswered.discard(request.creation_id)
        await kill_created(request.creation_id, self.options(), answered=answered)

    async def find(self, sandbox_id: str) -> Launched:
        """A running sandbox by its id. Its lifetime stays what it is."""
        options = self.options()
        info = await describe(sandbox_id, options)
        remaining = (info.end_at - datetime.now(UTC)).total_seconds()
        if remaining <= 0:
            raise SandboxGone(f"the lifetime of the E2B sandbox {sandbox_id[:40]} is over")
        lifetime = Lifetime(remaining, timeout=(info.end_at - info.started_at).total_seconds())
        native = await AsyncSandbox.connect(sandbox_id, timeout=max(1, math.floor(remaining)), **options)
        creation_id = info.metadata.get(LABEL_CREATION, "")
        return await self._operate(
            native,
            info.name or info.template_id,
            creation_id,
            lifetime,
            callers_metadata(info.metadata),
            None,
        )

    def translate(self, exc: Exception) -> SandboxError | None:
        """See `sandboxio_e2b.errors.translate`."""
        return translate(exc)

    async def _operate(
        self,
        native: AsyncSandbox,
        template: str,
        creation_id: str,
        lifetime: Lifetime,
        metadata: Mapping[str, str],
        env: Mapping[str, str] | None,
    ) -> Launched:
        facts = await probe(native, seconds=_REQUEST_SECONDS)
        driver = E2BDriver(native, facts, key=creation_id, template=template, env=env)
        return Launched(
            id=native.sandbox_id,
            driver=driver,
            capabilities=driver.capabilities,
            isolation=IsolationTier.MICROVM,
            lifetime=lifetime,
            metadata=metadata,
            loosened=self.config.loosened,
        )


def _provider_env(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that E2B itself may keep.

    Its code interpreter pastes them into code between single quotes; the others go with each execution.
    """
    return {name: value for name, value in env.items() if not _QUOTED_BADLY.intersection(name + value)}


def _made_nothing(exc: Exception) -> bool:
    """Whether nothing can have been made: the provider has said so, or was not reached."""
    if isinstance(exc, (AuthenticationException, RateLimitException, httpx.ConnectError)):
        return True
    status = exc.status_code if isinstance(exc, SandboxException) else None
    return status is not None and 400 <= status < 500


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as exc:
        raise ConfigurationError(
            "the E2B SDK works on asyncio only, and this event loop is another one",
            hint='run it with asyncio, such as anyio.run(main, backend="asyncio"), or use another backend',
        ) from exc
