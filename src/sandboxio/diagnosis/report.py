"""The values that a diagnosis consists of. Nothing here looks at anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sandboxio.models import FrozenMapping

__all__ = ["BackendReport", "Check", "CheckStatus", "DoctorReport"]

CheckStatus = Literal["ok", "warning", "failed"]
"""How a check came out."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What, in a few words.
        status: `"ok"`; `"warning"` for a loosened switch or a lack that only limits what can be
            done; `"failed"` when sandboxes cannot be created although everything that is needed
            for it was given.
        detail: What was found. Without any secret.
        hint: The fix, when it is not ok.

    Example: `Check("engine", "failed", "no answer", "start the engine")`
    """

    name: str
    status: CheckStatus
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class BackendReport:
    """The state of one installed backend, as its default configuration has it.

    Attributes:
        name: The backend's name.
        isolation: The value of the tier that `create` would give, `unknown` if that cannot be told,
            and `none` for the fake, which executes nothing.
        capabilities: The names of what its sandboxes can usually do.
        credentials: For each credential variable of the provider, whether it is set.
        checks: What was looked at.
        versions: The versions of the distribution that provides it and of what that one needs, such
            as the provider's SDK.

    Example: `[report.name for report in sandboxio.doctor().backends if not report.ok]`
    """

    name: str
    isolation: str
    capabilities: tuple[str, ...]
    credentials: Mapping[str, bool]
    checks: tuple[Check, ...]
    versions: Mapping[str, str] = field(default_factory=FrozenMapping[str, str])

    def __post_init__(self) -> None:
        object.__setattr__(self, "credentials", FrozenMapping(self.credentials))
        object.__setattr__(self, "versions", FrozenMapping(self.versions))

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "failed" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values, with `ok`."""
        return {
            "name": self.name,
            "ok": self.ok,
            "isolation": self.isolation,
            "capabilities": list(self.capabilities),
            "credentials": dict(self.credentials),
            "versions": dict(self.versions),
            "checks": [asdict(check) for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What `doctor()` found.

    Attributes:
        version: The version of sandboxio.
        python: The version and implementation of Python.
        platform: The operating system and architecture.
        variables: The names of the variables that are set and change what sandboxio and the known
            providers do: those that begin with `SBX_` or a backend's name, and those for proxies.
        backends: One report for each installed backend.
        not_installed: The install command of each known backend that is missing.
        versions: The versions of what sandboxio itself needs.

    Example: `print(doctor().as_dict())`
    """

    version: str
    python: str
    platform: str
    variables: tuple[str, ...]
    backends: tuple[BackendReport, ...]
    not_installed: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=FrozenMapping[str, str])

    def __post_init__(self) -> None:
        object.__setattr__(self, "not_installed", FrozenMapping(self.not_installed))
        object.__setattr__(self, "versions", FrozenMapping(self.versions))

    @property
    def ok(self) -> bool:
        """Whether no installed backend failed a check."""
        return all(backend.ok for backend in self.backends)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values, with `ok` for the whole and for each backend."""
        return {
            "version": self.version,
            "python": self.python,
            "platform": self.platform,
            "versions": dict(self.versions),
            "variables": list(self.variables),
            "backends": [backend.as_dict() for backend in self.backends],
            "not_installed": dict(self.not_installed),
            "ok": self.ok,
        }
