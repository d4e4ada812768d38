"""From a request to a sandbox that is owned: the one way in which sandboxes come to be.

An adapter's backend implements `Provisioner`; `provision` and `attach` do the rest. Preparing
(pulling an image, resolving a template) can be cancelled at any await. From the moment the create
request is sent until a handle owns the sandbox, the work is shielded and bounded, and whatever a
failure or a cancellation interrupts is discarded by the creation id, which was chosen beforehand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar
from uuid import uuid4

import anyio

from sandboxio._version import __version__
from sandboxio.adapter.driver import Driver
from sandboxio.adapter.guard import Guard, Identity, not_supported
from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.operation import Recorder
from sandboxio.adapter.sandbox import Sandbox
from sandboxio.adapter.validation import (
    checked_environment,
    checked_metadata,
    checked_template,
    checked_timeout,
)
from sandboxio.audit import AuditConfig
from sandboxio.environment import seconds_from_environment
from sandboxio.errors import (
    ConnectError,
    CreateTimeout,
    CreationError,
    SandboxError,
    UnverifiedIsolationWarning,
)
from sandboxio.models import Capability, IsolationTier, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.redaction import Redactor, redactor_for
from sandboxio.release import GRACE_VARIABLE, bounded, uninterrupted, warn_orphaned

__all__ = [
    "LABEL_CREATION",
    "LABEL_MANAGED",
    "LABEL_VERSION",
    "CreateRequest",
    "Launched",
    "Provisioner",
    "Translated",
    "attach",
    "provision",
]

LABEL_MANAGED: Final = "sandboxio.managed"
LABEL_VERSION: Final = "sandboxio.version"
LABEL_CREATION: Final = "sandboxio.creation"

_warned_unverified: set[str] = set()


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """What was asked for, checked and completed.

    Attributes:
        template: The backend's word for an image or template; `None` for its default.
        resources: The caps; a field that is `None` means the backend's default.
        network: The network policy.
        env: Variables of every execution.
        secrets: Variables of every execution that the kit adds itself; not for the provider.
        timeout: The lifetime in seconds.
        metadata: The caller's labels.
        creation_id: Unique; `labels` carries it, so that what was lost can be found.
    """

    template: str | None
    resources: Resources
    network: NetworkPolicy
    env: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)
    timeout: float
    metadata: Mapping[str, str]
    creation_id: str

    @property
    def labels(self) -> dict[str, str]:
        """What the provider must store beside the sandbox."""
        return {
            **self.metadata,
            LABEL_MANAGED: "true",
            LABEL_VERSION: __version__,
            LABEL_CREATION: self.creation_id,
        }


@dataclass(frozen=True, slots=True)
class Launched:
    """A sandbox that runs, before anyone owns it.

    Attributes:
        id: The provider's own id.
        driver: What operates it.
        capabilities: What it can do.
        isolation: What was verified about its isolation.
        lifetime: How long it still has.
        metadata: The caller's labels.
        loosened: The names of the hardening switches that the caller has loosened.
    """

    id: str
    driver: Driver
    capabilities: Capability
    isolation: IsolationTier
    lifetime: Lifetime
    metadata: Mapping[str, str]
    loosened: tuple[str, ...] = ()


PreparedT = TypeVar("PreparedT")


class Provisioner(Protocol[PreparedT]):
    """The provisioning half of an adapter."""

    @property
    def name(self) -> str:
        """The backend's name."""
        ...

    @property
    def capabilities(self) -> Capability:
        """What its sandboxes usually can do."""
        ...

    @property
    def audit(self) -> AuditConfig:
        """Where records of operations go."""
        ...

    @property
    def create_timeout(self) -> float:
        """How long `launch` may take, in seconds."""
        ...

    async def prepare(self, request: CreateRequest) -> PreparedT:
        """Everything before the create request; cancellable at every await.

        What cannot be honoured is refused here, before anything exists.
        """
        ...

    async def launch(self, request: CreateRequest, prepared: PreparedT) -> Launched:
        """Create and start. Runs shielded; policy and caps are in force when it returns."""
        ...

    async def discard(self, request: CreateRequest) -> None:
        """Remove whatever carries the request's creation id; there may be nothing."""
        ...

    async def find(self, sandbox_id: str) -> Launched:
        """A running sandbox by its id.

        Raises:
            SandboxGone: There is none, or it has ended.
        """
        ...

    def translate(self, exc: Exception) -> SandboxError | None:
        """The error of ours that a provider's exception means, or `None` if it is no such thing."""
        ...


async def provision(
    provisioner: Provisioner[PreparedT],
    *,
    template: str | None,
    resources: Resources | None,
    network: NetworkPolicy | None,
    env: Mapping[str, str] | None,
    secrets: Mapping[str, str] | None,
    timeout: float,
    metadata: Mapping[str, str] | None,
) -> Sandbox:
    """Create a sandbox through an adapter and hand it over, owned.

    Raises:
        ConfigurationError: An argument is malformed.
        CapabilityNotSupported: The backend cannot honour what was asked. Nothing was created.
        CreationError, CreateTimeout, ConnectError, AuthError, RateLimitError: It failed. Nothing
            was left behind, or an `OrphanedSandboxWarning` says what may have been.
    """
    _require_valid_environment()
    request = CreateRequest(
        template=checked_template(template),
        resources=resources or Resources(),
        network=network or NetworkPolicy(),
        env=checked_environment("env", env),
        secrets=checked_environment("secrets", secrets),
        timeout=checked_timeout(timeout),
        metadata=checked_metadata(metadata),
        creation_id=uuid4().hex,
    )
    redactor = redactor_for(provisioner.name, request.secrets)
    recorder = Recorder(
        Identity("", provisioner.name, IsolationTier.UNKNOWN, request.metadata),
        provisioner.audit,
        redactor,
    )
    launched: Launched | None = None
    handed_over = False
    try:
        async with recorder.operation("create") as operation:
            _refuse_unsupported(provisioner, request)
            with Translated(provisioner.translate, redactor, "creating a sandbox"):
                prepared = await provisioner.prepare(request)

                async def launch() -> None:
                    nonlocal launched
                    launched = await _launch(provisioner, request, prepared)

                await uninterrupted(launch)
            assert launched is not None
            operation.identity = _identity(provisioner.name, launched)
            sandbox = _own(provisioner, launched, redactor, request.secrets, owned=True)
            await anyio.lowlevel.checkpoint_if_cancelled()  # what struck while it was shielded
        handed_over = True
        return sandbox
    finally:
        if launched is not None and not handed_over:
            try:
                await _discard(provisioner, request)
            finally:
                await _release(launched)


async def attach(provisioner: Provisioner[PreparedT], sandbox_id: str) -> Sandbox:
    """A handle, not owned, to a sandbox that exists.

    Raises:
        SandboxGone: There is none of this id, or it has ended.
        ConnectError, AuthError, RateLimitError: The provider did not answer as it should.
    """
    _require_valid_environment()
    identity = Identity(sandbox_id, provisioner.name, IsolationTier.UNKNOWN, {})
    redactor = redactor_for(provisioner.name)
    launched: Launched | None = None
    handed_over = False
    try:
        async with Recorder(identity, provisioner.audit, redactor).operation("connect") as operation:
            with Translated(provisioner.translate, redactor, "connecting to a sandbox"):
                launched = await provisioner.find(sandbox_id)
            operation.identity = _identity(provisioner.name, launched)
            sandbox = _own(provisioner, launched, redactor, {}, owned=False)
        handed_over = True
        return sandbox
    finally:
        if launched is not None and not handed_over:
            await _release(launched)


def _require_valid_environment() -> None:
    """What a teardown will go by is checked while there is still nothing to tear down."""
    for variable in (GRACE_VARIABLE, "SBX_AUDIT_TIMEOUT"):
        seconds_from_environment(variable, 1.0)


async def _release(launched: Launched) -> None:
    with anyio.CancelScope(shield=True):
        await launched.driver.aclose()


def _refuse_unsupported(provisioner: Provisioner[PreparedT], request: CreateRequest) -> None:
    declared = provisioner.capabilities
    name = provisioner.name
    network = request.network
    if Capability.NETWORK_POLICY not in declared:
        raise not_supported(
            f"the backend {name} cannot enforce a network policy (NETWORK_POLICY), so nothing is created",
            Capability.NETWORK_POLICY,
        )
    needed = (
        (bool(network.allow), Capability.NETWORK_ALLOWLIST, "an allow list"),
        (network.egress == "learn", Capability.EGRESS_LEARN, 'egress="learn"'),
        (bool(network.ingress_ports), Capability.TUNNELS, "ingress ports"),
        (request.resources.gpu is not None, Capability.GPU, "a GPU"),
    )
    for wanted, flag, words in needed:
        if wanted and flag not in declared:
            raise not_supported(f"the backend {name} does not support {words} ({flag.name})", flag)


async def _launch(
    provisioner: Provisioner[PreparedT], request: CreateRequest, prepared: PreparedT
) -> Launched:
    launched: Launched | None = None
    try:
        with anyio.move_on_after(provisioner.create_timeout):
            launched = await provisioner.launch(request, prepared)
    finally:
        if launched is None:
            await _discard(provisioner, request)
    if launched is None:
        raise CreateTimeout(
            f"the backend {provisioner.name} provided no sandbox within {provisioner.create_timeout:g} s"
        )
    return launched


async def _discard(provisioner: Provisioner[PreparedT], request: CreateRequest) -> None:
    reason = "its creation was interrupted and could not be undone in time"
    try:
        done = await bounded(lambda: provisioner.discard(request))
    except Exception as exc:
        done = False
        reason = f"undoing its creation failed with {type(exc).__name__}"
    if not done:
        warn_orphaned(f"with the label {LABEL_CREATION}={request.creation_id}", provisioner.name, reason)


class Translated:
    """Turns what an adapter raises into errors of ours; cancellation passes untouched.

    Args:
        translate: The adapter's own table; what it does not know becomes a `ConnectError`.
        redactor: Takes secrets out of the error.
        doing: What was being done, for the message.

    Example: `with Translated(translate, redactor_for("acme"), "listing sandboxes"): ...`
    """

    def __init__(
        self, translate: Callable[[Exception], SandboxError | None], redactor: Redactor, doing: str
    ) -> None:
        self._translate = translate
        self._redactor = redactor
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: object
    ) -> None:
        if isinstance(exc, Exception) and not isinstance(exc, SandboxError):
            error = self._translate(exc) or ConnectError(f"{self._doing} failed with {type(exc).__name__}")
            self._redactor.error(error)
            self._redactor.error(exc)
            raise error from exc


def _require_ports(launched: Launched) -> None:
    """An adapter that declares what it has no port for is refused, rather than failing later."""
    driver, declared = launched.driver, launched.capabilities
    processes = Capability.RUN_COMMAND | Capability.STREAMING
    if (
        (driver.processes is None and declared & processes)
        or (driver.processes is None and driver.code is None and Capability.RUN_CODE in declared)
        or (driver.files is None and declared & (Capability.FILESYSTEM | Capability.UPLOAD_DOWNLOAD))
    ):
        raise CreationError(
            f"the adapter declares {declared!r} without the ports behind it",
            hint="this is a fault of the adapter: report it to its authors",
        )


def _identity(backend: str, launched: Launched) -> Identity:
    return Identity(launched.id, backend, launched.isolation, launched.metadata, launched.loosened)


def _own(
    provisioner: Provisioner[PreparedT],
    launched: Launched,
    redactor: Redactor,
    secrets: Mapping[str, str],
    *,
    owned: bool,
) -> Sandbox:
    identity = _identity(provisioner.name, launched)
    _require_ports(launched)
    if launched.isolation is IsolationTier.UNKNOWN and provisioner.name not in _warned_unverified:
        _warned_unverified.add(provisioner.name)
        warnings.warn(
            f"the backend {provisioner.name} reports no verified isolation tier",
            UnverifiedIsolationWarning,
            stacklevel=2,
        )
    return Sandbox(
        guard=Guard(launched.driver, identity, launched.capabilities, launched.lifetime, redactor),
        recorder=Recorder(identity, provisioner.audit, redactor),
        secrets=secrets,
        owned=owned,
    )
