"""Looking at what is installed. It makes no paid call, and every step is bounded."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from typing import TYPE_CHECKING, Final, get_args

import anyio
import anyio.lowlevel

from sandboxio._version import __version__
from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.diagnosis.privacy import relevant_variables, without_private_values
from sandboxio.diagnosis.report import BackendReport, Check, CheckStatus, DoctorReport
from sandboxio.errors import ConnectError, SandboxError
from sandboxio.protocols import DiagnosableBackend, IsolationVerifier
from sandboxio.registry import backend_class, backend_distribution, installed_backends

if TYPE_CHECKING:
    from sandboxio.protocols import Backend

__all__ = ["checks_of", "doctor", "examine"]

# Longer than an adapter waits for its engine or service, so that its own words come before ours.
_STEP_SECONDS: Final = 25.0
_CORE: Final = "sandboxio"
_NO_ISOLATION: Final = "none"
_OWN_ADVICE: Final = re.compile(r"(?:[,;] )?(?:then )?run `sandboxio doctor`.*")
_GENERAL_FIX: Final = "see whether the engine or service answers its own tools, and look at its log"
_REQUIRED_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def doctor() -> DoctorReport:
    """Look at what is installed here and whether it works. It also works inside a running loop.

    It raises nothing for a backend that is broken: that is a finding. All backends are looked at
    at the same time, and each is given 25 s at most.

    Example: `assert sandboxio.doctor().ok`
    """
    if not _loop_is_running():
        return anyio.run(examine)
    with ThreadPoolExecutor(1, "sandboxio-doctor") as executor:
        return executor.submit(anyio.run, examine).result()


def _loop_is_running() -> bool:
    try:
        anyio.lowlevel.current_token()
    except RuntimeError:
        return False
    return True


async def examine() -> DoctorReport:
    """What `doctor` does, for a caller who wants to be able to cancel it.

    Example: `report = await examine()`
    """
    names = installed_backends()
    variables = relevant_variables({*names, *KNOWN_BACKENDS})
    found: dict[str, BackendReport] = {}

    async def look_at(name: str) -> None:
        report = await _examine_backend(name)
        checks = tuple(_further(check) for check in report.checks)
        found[name] = replace(
            report, checks=tuple(without_private_values(check, variables) for check in checks)
        )

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(look_at, name)
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
        broken = (_failed("configuration", exc, name),)
        return BackendReport(name, "unknown", (), credentials, broken, versions)
    tiers: list[str] = []
    doubts: list[Check] = []
    checks: list[Check] = []

    async def ask_for_tier() -> None:
        try:
            tiers.append(await _isolation(name, backend))
        except Exception as exc:  # whatever a provider raises is a finding
            doubts.append(_failed("isolation", exc, name))

    async def ask_for_checks() -> None:
        checks.extend(await checks_of(name, backend))

    async with anyio.create_task_group() as group:
        group.start_soon(ask_for_tier)
        group.start_soon(ask_for_checks)
    checks += [doubt for doubt in doubts if not _is_told(doubt, checks)]
    isolation = tiers[0] if tiers else "unknown"
    return BackendReport(name, isolation, capabilities, credentials, tuple(checks), versions)


async def checks_of(name: str, backend: Backend) -> tuple[Check, ...]:
    """What a backend says about itself, in bounded time; whatever it raises is a failed check.

    Example: `await checks_of("docker", sandboxio.backend_for("docker://"))`
    """
    try:
        return await _checks(name, backend)
    except Exception as exc:  # as above
        return (_failed("diagnosis", exc, name),)


async def _isolation(name: str, backend: Backend) -> str:
    if backend_distribution(name) == _CORE:
        return _NO_ISOLATION  # what core brings itself, the fake, executes nothing, whatever it declares
    if not isinstance(backend, IsolationVerifier):
        return backend.isolation.value
    with anyio.move_on_after(_STEP_SECONDS):
        return (await backend.verify_isolation()).value
    raise _no_answer()


async def _checks(name: str, backend: Backend) -> tuple[Check, ...]:
    if not isinstance(backend, DiagnosableBackend):
        return (Check("diagnosis", "warning", "this backend offers none"),)
    with anyio.move_on_after(_STEP_SECONDS):
        checks = tuple(await backend.diagnose())
        if not all(map(_is_check, checks)):
            told = "diagnose() of this backend returns no checks"
            return (Check("diagnosis", "failed", told, _report_it(name)),)
        return checks
    raise _no_answer()


def _is_check(found: object) -> bool:
    """Whether a foreign backend has given what it should."""
    if not isinstance(found, Check):
        return False
    texts = (found.name, found.detail, found.hint)
    are_texts = all(isinstance(text, str) for text in texts)  # pyright: ignore[reportUnnecessaryIsInstance]
    return are_texts and found.status in get_args(CheckStatus)


def _no_answer() -> ConnectError:
    return ConnectError(
        f"no answer within {_STEP_SECONDS:g} s",
        hint="see whether the engine or service answers its own tools, then start it anew",
    )


def _report_it(backend: str) -> str:
    return f"report this to the authors of {backend_distribution(backend) or f'the backend {backend}'}"


def _is_told(check: Check, others: Sequence[Check]) -> bool:
    """Whether one of the others says the same, as when nothing answers at all."""
    return bool(check.hint) and any(
        check.hint == other.hint and check.detail.endswith(other.detail) for other in others
    )


def _failed(name: str, exc: Exception, backend: str) -> Check:
    """The finding that an exception is. The text of a foreign one may hold anything, so its type is told."""
    error = exc
    if not isinstance(error, SandboxError):
        error = ConnectError(
            f"the backend failed with {type(exc).__name__}",
            hint="see whether its engine or service answers its own tools; if it does, "
            + _report_it(backend),
        )
    return Check(name, "failed", f"[{error.code}] {error.message}", error.hint)


def _further(check: Check) -> Check:
    """The check, whose fix does not advise to run what has just run."""
    hint = _OWN_ADVICE.sub("", check.hint)
    return replace(check, hint=hint or (_GENERAL_FIX if check.hint else ""))


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
