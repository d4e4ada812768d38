"""`create`, `connect` and `backend_for`: from a target to a sandbox, or to the backend behind it.

A target is resolved to a backend, what was asked for is checked, and the backend does the rest.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Mapping
from dataclasses import dataclass
from types import CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET
from sandboxio.errors import CapabilityNotSupported, ConfigurationError, SandboxError
from sandboxio.models import IsolationTier, Resources, is_positive, shown
from sandboxio.network import NetworkPolicy
from sandboxio.registry import BackendConfig, backend_class, is_loaded

if TYPE_CHECKING:
    from sandboxio.protocols import AsyncSandbox, Backend

__all__ = ["PendingSandbox", "backend_for", "connect", "create"]

DEFAULT_TIMEOUT: Final = 300
"""Seconds. It stands for a timeout that was left out, so it gives way to one in the target."""

T = TypeVar("T")


class PendingSandbox(Coroutine[Any, Any, "AsyncSandbox"]):
    """A sandbox that is about to be: await it, or use it as a context directly.

    It is a coroutine, so `asyncio.create_task`, `gather` and task groups take it, it can be used
    once, and one that is never used warns as any coroutine does.

    Example:
        async with sandboxio.create() as sb: ...
        sb = await sandboxio.create()
    """

    __slots__ = ("__name__", "__qualname__", "__weakref__", "_coroutine", "_owned", "_sandbox")

    def __init__(self, coroutine: Coroutine[Any, Any, AsyncSandbox], name: str, *, owned: bool) -> None:
        self._coroutine = coroutine
        self._owned = owned
        self._sandbox: AsyncSandbox | None = None
        self.__name__ = self.__qualname__ = name
        real = cast("CoroutineType[Any, Any, AsyncSandbox]", coroutine)
        real.__name__ = real.__qualname__ = name  # what a warning about an unused one says

    def __repr__(self) -> str:
        return f"<PendingSandbox of {self.__name__}()>"

    def __await__(self) -> Generator[Any, Any, AsyncSandbox]:
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        """Resume it, as for any coroutine."""
        return self._coroutine.send(value)

    def throw(self, *args: Any) -> Any:
        """Raise an exception inside it, as for any coroutine."""
        return self._coroutine.throw(*args)

    def close(self) -> None:
        """Give it up, as for any coroutine."""
        self._coroutine.close()

    async def __aenter__(self) -> AsyncSandbox:
        sandbox = await self._coroutine
        entered = await enter(sandbox, owned=self._owned)
        self._sandbox = sandbox
        return entered

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._sandbox is None:
            raise RuntimeError("this context was not entered")
        return await self._sandbox.__aexit__(exc_type, exc, traceback)


def create(
    target: str | BackendConfig | Backend | None = None,
    *,
    template: str | None = None,
    resources: Resources | None = None,
    network: NetworkPolicy | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    metadata: Mapping[str, str] | None = None,
    require_isolation: IsolationTier | None = None,
) -> PendingSandbox:
    """Create a sandbox. Leaving its context ends it.

    Args:
        target: A DSN such as `docker://python:3.12-slim`, a configuration object such as
            `DockerConfig()`, a backend, or `None` for Docker on this machine.
        template: The image or template; the backend has a default.
        resources: Caps; what is left out has the backend's modest default, never none.
        network: What it may reach; the default denies everything.
        env: Environment variables of every execution.
        secrets: The same for values that must not be shown anywhere; they are redacted.
        timeout: Lifetime in seconds, enforced by the provider. The default gives way to a timeout
            in the target; any other value that differs from that one is an error.
        metadata: Labels at the provider; `tenant_id` and `session_id` also go into audit events.
        require_isolation: Refuse to create anything below this tier.

    Raises:
        ConfigurationError: An argument is malformed, or contradicts the target.
        BackendNotFound, BackendNotInstalled: The target's backend is not there.
        CapabilityNotSupported: The backend cannot honour what was asked. Nothing was created.
        CreationError, CreateTimeout, ConnectError, AuthError, RateLimitError: It failed, and
            nothing was left behind.

    Example:
        async with sandboxio.create("docker://python:3.12-slim", timeout=60) as sb:
            print((await sb.run_code("print(6 * 7)")).stdout)
    """
    coroutine = _create(
        target,
        template=template,
        resources=resources,
        network=network,
        env=env,
        secrets=secrets,
        timeout=timeout,
        metadata=metadata,
        require_isolation=require_isolation,
    )
    return PendingSandbox(coroutine, "create", owned=True)


def connect(
    target: str | BackendConfig | Backend | None,
    sandbox_id: str,
    *,
    require_isolation: IsolationTier | None = None,
) -> PendingSandbox:
    """A handle to a sandbox that exists. Leaving its context does not end it.

    It does not know the secrets that the sandbox was created with: its executions are not given
    them, and they are not redacted in what this handle logs, records and raises.

    Args:
        target: Where it is, as for `create`. A template or a timeout in a DSN is refused, since
            the sandbox has its own.
        sandbox_id: The provider's id.
        require_isolation: Refuse a sandbox below this tier.

    Raises:
        SandboxGone: There is none of this id, or it has ended.
        CapabilityNotSupported: It falls short of `require_isolation`. It is left as it is.
        ConfigurationError, BackendNotFound, BackendNotInstalled: As for `create`.
        ConnectError, AuthError, RateLimitError: As for `create`.

    Example:
        sandbox_id = await sb.detach()
        async with sandboxio.connect("docker://", sandbox_id) as sb: ...
    """
    return PendingSandbox(_connect(target, sandbox_id, require_isolation), "connect", owned=False)


def backend_for(target: str | BackendConfig | Backend | None = None) -> Backend:
    """The backend behind a target, for what concerns no single sandbox. It does no I/O.

    What a backend can do besides is told by its ports: `ReapableBackend` lists and ends what was
    left, `DiagnosableBackend` says what state it is in.

    Args:
        target: As for `create`. A timeout in a DSN is refused, since it is a sandbox's.

    Raises:
        ConfigurationError: The target is malformed.
        BackendNotFound, BackendNotInstalled: The target's backend is not there.

    Example:
        backend = sandboxio.backend_for("docker://")
        if isinstance(backend, sandboxio.ReapableBackend):
            print(await backend.list_managed())
    """
    resolved = _resolve(target)
    if resolved.timeout is not None:
        raise _refused_part("timeout", "a backend has none")
    return resolved.backend


async def enter(sandbox: AsyncSandbox, *, owned: bool) -> AsyncSandbox:
    """Enter the context of a sandbox. One that was just created is ended when that fails.

    Example: `entered = await enter(await backend.create(...), owned=True)`
    """
    try:
        return await sandbox.__aenter__()
    except BaseException:
        if owned:
            await _discard(sandbox)
        raise


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A target as it was understood."""

    backend: Backend
    template: str | None = None
    timeout: float | None = None


async def _create(
    target: str | BackendConfig | Backend | None,
    *,
    template: str | None,
    resources: Resources | None,
    network: NetworkPolicy | None,
    env: Mapping[str, str] | None,
    secrets: Mapping[str, str] | None,
    timeout: float,
    metadata: Mapping[str, str] | None,
    require_isolation: IsolationTier | None,
) -> AsyncSandbox:
    _check_type("template", template, str)
    _check_type("resources", resources, Resources)
    _check_type("network", network, NetworkPolicy)
    _check_required(require_isolation)
    given = _checked_timeout(timeout)
    resolved = await _resolve_beside(target)
    template = _either("template", template, resolved.template)
    seconds = _either("timeout", None if given == DEFAULT_TIMEOUT else given, resolved.timeout)
    backend = resolved.backend
    if require_isolation is not None:
        _require(await _expected_isolation(backend), require_isolation, f"the backend {backend.name}")
    sandbox = await backend.create(
        template=template,
        resources=resources or Resources(),
        network=network or NetworkPolicy(),
        env=env,
        secrets=secrets,
        timeout=given if seconds is None else seconds,
        metadata=metadata,
    )
    if require_isolation is not None:
        try:
            _require(sandbox.isolation, require_isolation, f"the {backend.name} sandbox {sandbox.id}")
        except BaseException:
            await _discard(sandbox)
            raise
    return sandbox


async def _connect(
    target: str | BackendConfig | Backend | None,
    sandbox_id: str,
    require_isolation: IsolationTier | None,
) -> AsyncSandbox:
    _check_required(require_isolation)
    if not isinstance(sandbox_id, str) or not sandbox_id:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError("the sandbox id is no text, or empty", hint="give the id of a sandbox")
    resolved = await _resolve_beside(target)
    if isinstance(target, str) and resolved.template is not None:
        raise _refused_part("template", "the sandbox has its own")
    if resolved.timeout is not None:
        raise _refused_part("timeout", "the sandbox has its own")
    sandbox = await resolved.backend.connect(sandbox_id)
    if require_isolation is not None and not sandbox.isolation.satisfies(require_isolation):
        async with sandbox:  # not ours: leaving it only closes what the handle holds
            _require(sandbox.isolation, require_isolation, f"the {sandbox.backend} sandbox {sandbox.id}")
    return sandbox


async def _resolve_beside(target: object) -> _Resolved:
    """The same beside the event loop, where a provider's SDK can take a second to be imported."""
    name = _backend_name(target)
    if name is not None and not is_loaded(name):
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        await run_sync(backend_class, name, limiter=CapacityLimiter(1), abandon_on_cancel=True)
    return _resolve(target)


def _backend_name(target: object) -> str | None:
    """The name of the backend that a target names, if it is one that names any."""
    if target is None:
        return DEFAULT_BACKEND
    if isinstance(target, str):
        from sandboxio.dsn import parse_dsn

        return parse_dsn(target).backend
    return None


def _resolve(target: object) -> _Resolved:
    if target is None:
        target = f"{DEFAULT_BACKEND}://"
    if isinstance(target, type):
        raise ConfigurationError(
            f"the target is the class {target.__name__}, not an object of it",
            hint=f"make one, such as {target.__name__}(…), or give a DSN such as {EXAMPLE_TARGET}",
        )
    if isinstance(target, str):
        from sandboxio.dsn import parse_dsn

        dsn = parse_dsn(target)
        make = backend_class(dsn.backend)
        config = make.config_type.from_dsn(dsn.template, dsn.params)
        return _Resolved(make(config), dsn.template, dsn.timeout)
    name = getattr(target, "backend_name", None)
    if isinstance(name, str):
        config = cast("BackendConfig", target)
        make = backend_class(name)
        if not isinstance(config, make.config_type):
            raise ConfigurationError(
                f"the backend {name} is configured by {make.config_type.__name__}, "
                f"not by {type(config).__name__}",
                hint=f"give a {make.config_type.__name__} as the target",
            )
        return _Resolved(make(config), config.template)
    if all(hasattr(target, attribute) for attribute in ("name", "create", "connect")):
        return _Resolved(cast("Backend", target))
    raise ConfigurationError(
        f"the target is {type(target).__name__}",
        hint=f"give a DSN such as {EXAMPLE_TARGET}, a configuration object, or a backend",
    )


def _either(name: str, given: T | None, in_target: T | None) -> T | None:
    if given is not None and in_target is not None and given != in_target:
        raise ConfigurationError(
            f"{name} is given both in the target and as a keyword, and the two differ",
            hint=f"give {name} once",
        )
    return in_target if given is None else given


def _refused_part(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the target has a {name}, which has no meaning here: {why}",
        hint=f"leave the {name} out of the target",
    )


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(
            f"{name} is {type(value).__name__}, not {kind.__name__}",
            hint=f"give {name}={kind.__name__}(…), or leave it out",
        )


def _checked_timeout(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not is_positive(timeout):
        raise ConfigurationError(
            f"timeout is {shown(timeout)}, not a positive and finite number",
            hint="give a positive number of seconds: every sandbox has a lifetime",
        )
    return float(timeout)


def _check_required(minimum: IsolationTier | None) -> None:
    _check_type("require_isolation", minimum, IsolationTier)
    if minimum is not None:
        IsolationTier.MICROVM.satisfies(minimum)  # refuses UNKNOWN, which nobody can mean


async def _expected_isolation(backend: Backend) -> IsolationTier:
    from sandboxio.protocols import IsolationVerifier

    if isinstance(backend, IsolationVerifier):
        return await backend.verify_isolation()
    return backend.isolation


def _require(actual: IsolationTier, minimum: IsolationTier, who: str) -> None:
    if not actual.satisfies(minimum):
        raise CapabilityNotSupported(
            f"{who} gives the isolation tier {actual.name}, and require_isolation asks for {minimum.name}",
            hint=f"choose a backend or a runtime that gives {minimum.name}, "
            "or lower require_isolation if the weaker tier is enough for this code",
        )


async def _discard(sandbox: AsyncSandbox) -> None:
    """End a sandbox that nobody gets, whatever happens; the caller's error is the one that counts."""
    from sandboxio.release import bounded, warn_orphaned

    ended = False
    reason = "ending it took too long"

    async def end() -> None:
        nonlocal ended, reason
        try:
            await sandbox.kill()
            ended = True
        except SandboxError as exc:
            reason = f"ending it failed: {exc.message}"
        except Exception as exc:  # whatever a third party's sandbox raises
            reason = f"ending it failed: {type(exc).__name__}"

    try:
        await bounded(end)
    finally:  # also when a cancellation came meanwhile, which surfaces here
        if not ended:
            warn_orphaned(sandbox.id, sandbox.backend, reason)
