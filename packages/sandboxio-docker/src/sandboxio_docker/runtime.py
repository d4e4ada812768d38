"""What the engine says about itself: its runtimes, what it can cap, and how it maps users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

from sandboxio.errors import ConfigurationError, CreationError
from sandboxio.models import IsolationTier
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import UnexpectedAnswer

__all__ = ["EngineFacts", "read_facts"]

GVISOR_SOURCE: Final = "https://gvisor.dev/docs/architecture_guide/security/ (read 2026-11-30)"
"""Where gVisor's own documentation says what its sandbox keeps from the host's kernel."""

_RUNSC_SHIM: Final = "io.containerd.runsc.v1"
_REMAPPED_ROOT: Final = re.compile(r"/(\d+)\.(\d+)/?\Z", re.ASCII)
_NEEDED: Final = (
    ("MemoryLimit", "memory"),
    ("PidsLimit", "the number of processes"),
    ("CPUCfsQuota", "CPU time"),
)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The part of the engine's self-description that decisions rest on.

    Attributes:
        version: The engine's version.
        now: The engine's clock.
        default_runtime: The runtime it uses when none is named.
        runtimes: Its runtimes, by name.
        remapped: Whether it remaps users into a user namespace.
        uid_offset: What is added to a uid then; 0 when nothing is remapped, `None` when unknown.
        uncapped: What it cannot cap.
        swap_capped: Whether it can cap swap.
        seccomp: Whether a profile confines system calls by default.
    """

    version: str
    now: datetime
    default_runtime: str
    runtimes: Mapping[str, Mapping[str, Any]]
    remapped: bool
    uid_offset: int | None
    uncapped: tuple[str, ...]
    swap_capped: bool
    seccomp: bool

    def require_caps(self) -> None:
        """Refuse an engine that would ignore a cap, or that confines no system calls.

        Raises:
            CreationError: It would.
        """
        if not self.seccomp:
            raise CreationError(
                "this Docker engine applies no seccomp profile by default, so nothing is created",
                hint="remove seccomp-profile=unconfined from the engine's daemon.json, or use an engine "
                "that is built with seccomp",
            )
        if self.uncapped:
            raise CreationError(
                f"this Docker engine cannot cap {' or '.join(self.uncapped)}, so nothing is created",
                hint="give the engine its cgroup controllers: a rootless one needs cgroup v2 with delegation "
                "(`docker info` shows what is missing)",
            )

    def runtime_tier(self, name: str | None) -> tuple[str, IsolationTier]:
        """The runtime that `name` means, and the tier that it gives.

        Raises:
            ConfigurationError: The engine has no such runtime, or one under which caps do not hold.
        """
        chosen = name or self.default_runtime
        runtime = self.runtimes.get(chosen)
        if runtime is None:
            raise ConfigurationError(
                f"the Docker engine has no runtime {chosen[:80]!r}",
                hint=f"use one of {', '.join(sorted(self.runtimes))}, or register it in daemon.json",
            )
        if not _is_runsc(runtime):
            return chosen, IsolationTier.CONTAINER
        arguments = [str(argument) for argument in runtime.get("runtimeArgs") or ()]
        if any(_ignores_cgroups(argument) for argument in arguments):
            raise ConfigurationError(
                f"the runtime {chosen} runs with --ignore-cgroups, under which no cap holds",
                hint="register runsc without --ignore-cgroups in the engine's daemon.json",
            )
        if _hides_flags(runtime):
            raise ConfigurationError(
                f"the runtime {chosen} reads its flags from a file, so it cannot be seen whether caps hold",
                hint='register runsc with "path" and "runtimeArgs" in the engine\'s daemon.json',
            )
        return chosen, IsolationTier.GVISOR


async def read_facts(engine: Engine) -> EngineFacts:
    """Ask the engine about itself."""
    info = await engine.get("/info")
    runtimes = info.members("Runtimes")
    options = [str(option) for option in info.items_of("SecurityOptions")]
    remapped = any("name=userns" in option for option in options)
    root = _REMAPPED_ROOT.search(str(info.get("DockerRootDir", "")))
    offset = (int(root[1]) if root and root[1] == root[2] else None) if remapped else 0
    return EngineFacts(
        version=str(info.get("ServerVersion", "unknown")),
        now=parse_time(str(info["SystemTime"])),
        default_runtime=str(info.get("DefaultRuntime") or "runc"),
        runtimes={name: runtimes.part(name) for name in runtimes},
        remapped=remapped,
        uid_offset=offset,
        uncapped=tuple(words for key, words in _NEEDED if not _flag(info, key)),
        swap_capped=bool(info.get("SwapLimit")),
        seccomp=any("name=seccomp" in option and "unconfined" not in option for option in options),
    )


def parse_time(text: str) -> datetime:
    """A time as the engine writes it, in nanoseconds and with an offset."""
    seconds, _, fraction = text.partition(".")
    digits = re.match(r"\d*", fraction)
    length = digits.end() if digits else 0
    zone = fraction[length:] if fraction else ""
    try:
        found = datetime.fromisoformat(
            f"{seconds}.{fraction[:length][:6].ljust(6, '0')}{zone}" if fraction else seconds
        )
    except ValueError as exc:
        raise UnexpectedAnswer(f"{text[:40]!r} is no time") from exc
    if found.tzinfo is None:
        raise UnexpectedAnswer(f"{text[:40]!r} is no time with an offset")
    return found


def _flag(info: Mapping[str, Any], key: str) -> bool:
    names = {name.lower(): value for name, value in info.items()}
    return bool(names.get(key.lower()))


def _is_runsc(runtime: Mapping[str, Any]) -> bool:
    return (
        PurePosixPath(str(runtime.get("path", ""))).name == "runsc"
        or runtime.get("runtimeType") == _RUNSC_SHIM
    )


def _hides_flags(runtime: Mapping[str, Any]) -> bool:
    return runtime.get("runtimeType") == _RUNSC_SHIM and bool(runtime.get("options"))


def _ignores_cgroups(argument: str) -> bool:
    name, _, value = argument.lstrip("-").partition("=")
    return name == "ignore-cgroups" and value.lower() not in ("false", "f", "0")
