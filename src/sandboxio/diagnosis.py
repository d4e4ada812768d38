"""What `sandboxio doctor` finds out: versions, installed backends, and whether each one works.

It makes no paid call, every step is bounded, and it names variables but never their values.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.lowlevel

from sandboxio._version import __version__
from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.errors import SandboxError
from sandboxio.models import FrozenMapping
from sandboxio.protocols import DiagnosableBackend, IsolationVerifier
from sandboxio.registry import backend_class, installed_backends

if TYPE_CHECKING:
    from sandboxio.protocols import Backend

__all__ = ["BackendReport", "Check", "DoctorReport", "doctor"]

_STEP_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What, in a few words.
        status: `"ok"`; `"warning"` for a loosened switch or a lack that only limits what can be
            done; `"failed"` when sandboxes cannot be created.
        detail: What was found. Without any secret.
        hint: The fix, when it is not ok.

    Example: `Check("engine", "failed", "no answer", "start the engine")`
    """

    name: str
    status: Literal["ok", "warning", "failed"]
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class BackendReport:
    """The state of one installed backend, as its default configuration has it.

    Attributes:
        name: The backend's name.
        isolation: The value of the tier that `create` would give, `unknown` if that cannot be told.
        capabilities: The names of what its sandboxes can usually do.
        credentials: For each credential variable of the provider, whether it is set.
        checks: What was looked at.

    Example: `[report.name for report in sandboxio.doctor().backends if not report.ok]`
    """

    name: str
    isolation: str
    capabilities: tuple[str, ...]
    credentials: Mapping[str, bool]
    checks: tuple[Check, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "credentials", FrozenMapping(self.credentials))

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "failed" for check in self.checks)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What `doctor()` found.

    Attributes:
        version: The version of sandboxio.
        python: The version and implementation of Python.
        platform: The operating system and architecture.
        variables: The names of the `SBX_…` variables that are set.
        backends: One report for each installed backend.
        not_installed: The install command of each known backend that is missing.

    Example: `print(doctor().as_dict())`
    """

    version: str
    python: str
    platform: str
    variables: tuple[str, ...]
    backends: tuple[BackendReport, ...]
    not_installed: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "not_installed", FrozenMapping(self.not_installed))

    @property
    def ok(self) -> bool:
        """Whether no installed backend failed a check."""
        return all(backend.ok for backend in self.backends)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values, with `ok` for the whole and for each backend."""
        report = asdict(self)
        report["ok"] = self.ok
        report["variables"] = list(self.variables)
        report["not_installed"] = dict(self.not_installed)
        report["backends"] = [
            {
                **asdict(backend),
                "ok": backend.ok,
                "capabilities": list(backend.capabilities),
                "credentials": dict(backend.credentials),
                "checks": [asdict(check) for check in backend.checks],
            }
            for backend in self.backends
        ]
        return report


def doctor() -> DoctorReport:
    """Look at what is installed here and whether it works. It also works inside a running loop.

    It raises nothing for a backend that is broken: that is a finding. All backends are looked at
    at the same time, and each is given 30 s at most.

    Example: `assert sandboxio.doctor().ok`
    """
    if not _loop_is_running():
        return anyio.run(_examine)
    with ThreadPoolExecutor(1, "sandboxio-doctor") as executor:
        return executor.submit(anyio.run, _examine).result()


def _loop_is_running() -> bool:
    try:
        anyio.lowlevel.current_token()
    except RuntimeError:
        return False
    return True


async def _examine() -> DoctorReport:
    names = installed_backends()
    found: dict[str, BackendReport] = {}

    async def examine(name: str) -> None:
        found[name] = await _examine_backend(name)

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(examine, name)
    return DoctorReport(
        version=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        variables=tuple(sorted(name for name in os.environ if name.startswith("SBX_"))),
        backends=tuple(found[name] for name in names),
        not_installed={
            row.name: row.install_command
            for row in KNOWN_BACKENDS.values()
            if row.install_command is not None and row.name not in names
        },
    )


async def _examine_backend(name: str) -> BackendReport:
    known = KNOWN_BACKENDS.get(name)
    credentials = {variable: variable in os.environ for variable in (known.credentials if known else ())}
    try:
        make = backend_class(name)
        backend = make(make.config_type.from_dsn(None, {}))
        capabilities = tuple(flag.name or "" for flag in backend.capabilities)
    except Exception as exc:  # a backend that cannot be made is a finding
        return BackendReport(name, "unknown", (), credentials, (_failed("configuration", exc),))
    isolation, found = await _isolation(backend)
    return BackendReport(name, isolation, capabilities, credentials, (*await _checks(backend), *found))


async def _checks(backend: Backend) -> tuple[Check, ...]:
    try:
        if not isinstance(backend, DiagnosableBackend):
            return (Check("diagnosis", "warning", "this backend offers none"),)
        with anyio.fail_after(_STEP_SECONDS):
            checks = tuple(await backend.diagnose())
        if not all(isinstance(check, Check) for check in checks):  # pyright: ignore[reportUnnecessaryIsInstance]
            return (Check("diagnosis", "failed", "diagnose() of this backend returns no checks"),)
    except Exception as exc:  # whatever a provider raises is a finding
        return (_failed("diagnosis", exc),)
    return checks


async def _isolation(backend: Backend) -> tuple[str, tuple[Check, ...]]:
    try:
        if not isinstance(backend, IsolationVerifier):
            return backend.isolation.value, ()
        with anyio.fail_after(_STEP_SECONDS):
            return (await backend.verify_isolation()).value, ()
    except Exception as exc:  # whatever a provider raises is a finding
        return "unknown", (_failed("isolation", exc),)


def _failed(name: str, exc: Exception) -> Check:
    if isinstance(exc, SandboxError):
        return Check(name, "failed", f"[{exc.code}] {exc.message}", exc.hint)
    if isinstance(exc, TimeoutError):
        return Check(name, "failed", f"no answer within {_STEP_SECONDS:g} s")
    return Check(name, "failed", type(exc).__name__)  # its text is not ours and may hold anything
