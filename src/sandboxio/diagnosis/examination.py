"""Looking at what is installed. It makes no paid call, and every step is bounded."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from sandboxio._version import __version__
from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.diagnosis.privacy import relevant_variables, without_private_values
from sandboxio.diagnosis.report import BackendReport, Check, DoctorReport
from sandboxio.errors import SandboxError
from sandboxio.protocols import DiagnosableBackend, IsolationVerifier
from sandboxio.registry import backend_class, backend_distribution, installed_backends

if TYPE_CHECKING:
    from sandboxio.protocols import Backend

__all__ = ["doctor"]

_STEP_SECONDS: Final = 15.0
_CORE: Final = "sandboxio"
_REQUIRED_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


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
    variables = relevant_variables({*names, *KNOWN_BACKENDS})
    found: dict[str, BackendReport] = {}

    async def examine(name: str) -> None:
        report = await _examine_backend(name)
        checks = tuple(without_private_values(check, variables) for check in report.checks)
        found[name] = replace(report, checks=checks)

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(examine, name)
    return DoctorReport(
        version=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        variables=variables,
        backends=tuple(found[name] for name in names),
        not_installed={
            row.name: row.install_command
            for row in KNOWN_BACKENDS.values()
            if row.install_command is not None and row.name not in names
        },
        versions=_versions(_CORE),
    )


async def _examine_backend(name: str) -> BackendReport:
    known = KNOWN_BACKENDS.get(name)
    credentials = {
        variable: bool(os.environ.get(variable)) for variable in (known.credentials if known else ())
    }
    versions = _backend_versions(name)
    try:
        make = backend_class(name)
        backend = make(make.config_type.from_dsn(None, {}))
        capabilities = tuple(flag.name or "" for flag in backend.capabilities)
    except Exception as exc:  # a backend that cannot be made is a finding
        return BackendReport(name, "unknown", (), credentials, (_failed("configuration", exc),), versions)
    isolation, found = await _isolation(backend)
    checks = await _checks(backend)
    checks += tuple(check for check in found if not _is_told(check, checks))
    return BackendReport(name, isolation, capabilities, credentials, checks, versions)


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


def _is_told(check: Check, others: tuple[Check, ...]) -> bool:
    """Whether one of the others says the same, as when nothing answers at all."""
    return bool(check.hint) and any(
        check.hint == other.hint and check.detail.endswith(other.detail) for other in others
    )


def _failed(name: str, exc: Exception) -> Check:
    if isinstance(exc, SandboxError):
        return Check(name, "failed", f"[{exc.code}] {exc.message}", exc.hint)
    if isinstance(exc, TimeoutError):
        return Check(name, "failed", f"no answer within {_STEP_SECONDS:g} s")
    return Check(name, "failed", type(exc).__name__)  # its text is not ours and may hold anything


def _backend_versions(name: str) -> Mapping[str, str]:
    """The versions of the distribution behind a backend and of what it needs; none for core's own."""
    provider = backend_distribution(name)
    if provider is None or provider == _CORE:
        return {}
    return {provider: version(provider), **_versions(provider)}


def _versions(name: str) -> Mapping[str, str]:
    """The installed versions of what a distribution needs in any case, extras left out."""
    try:
        needed = requires(name) or []
    except PackageNotFoundError:  # it runs from a folder
        return {}
    found: dict[str, str] = {}
    for requirement in needed:
        match = _REQUIRED_NAME.match(requirement)
        if match is None or "extra ==" in requirement or match[0] == _CORE:
            continue
        try:
            found[distribution(match[0]).metadata["Name"]] = version(match[0])
        except PackageNotFoundError:  # it is for another platform
            continue
    return found
