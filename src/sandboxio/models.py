"""The value objects of the domain: what goes in and what comes out.

Every object is a frozen, slotted dataclass compared by value, and every sequence in one is a
tuple. Network rules live in `sandboxio.network`; nothing here performs I/O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, Flag, auto
from types import MappingProxyType
from typing import Final, Literal, Self

from sandboxio.errors import ConfigurationError, ExecutionError

__all__ = [
    "PIPE",
    "Capability",
    "ExecResult",
    "FileInfo",
    "IsolationTier",
    "ManagedSandbox",
    "Meter",
    "OutputChunk",
    "Pipe",
    "Resources",
    "RichOutput",
]


class Pipe(Enum):
    """The type of `PIPE`, so that a type checker can tell it from bytes and text."""

    PIPE = "pipe"


PIPE: Final = Pipe.PIPE
"""Given as `stdin=` to `stream()`: input is written while the process runs.

Example: `async with sb.stream(["cat"], stdin=PIPE) as proc: await proc.write(b"hi")`.
"""


class Capability(Flag):
    """What a sandbox can do. Read it from the sandbox, and branch on it, never on a backend's name.

    Using what is not declared raises `CapabilityNotSupported`; nothing is silently emulated.

    Example: `if Capability.STATEFUL_CODE in sb.capabilities: ...`
    """

    RUN_COMMAND = auto()
    RUN_CODE = auto()
    STATEFUL_CODE = auto()
    STREAMING = auto()
    FILESYSTEM = auto()
    UPLOAD_DOWNLOAD = auto()
    PTY = auto()
    PAUSE_RESUME = auto()
    SNAPSHOT_FORK = auto()
    GPU = auto()
    LSP = auto()
    GIT = auto()
    NETWORK_POLICY = auto()
    TUNNELS = auto()
    COST_REPORTING = auto()
    NETWORK_ALLOWLIST = auto()
    EGRESS_LEARN = auto()
    RAW_OUTPUT = auto()


class IsolationTier(Enum):
    """How hard a sandbox makes it to escape to the host's kernel. It says nothing else.

    Tiers are ordered: `IsolationTier.MICROVM > IsolationTier.CONTAINER`. `UNKNOWN` is what an
    adapter reports that proves nothing; it satisfies no requirement and cannot be required.

    Example: `sb.isolation.satisfies(IsolationTier.GVISOR)`
    """

    UNKNOWN = "unknown"
    CONTAINER = "container"
    GVISOR = "gvisor"
    MICROVM = "microvm"

    @property
    def rank(self) -> int:
        """The place of this tier in the order, 0 for the weakest."""
        return ISOLATION_RANK[self]

    def satisfies(self, minimum: IsolationTier) -> bool:
        """Whether this tier is at least `minimum`.

        Raises:
            ConfigurationError: `minimum` is `UNKNOWN`, which nobody can mean.
        """
        if minimum is IsolationTier.UNKNOWN:
            raise ConfigurationError(
                "the isolation tier UNKNOWN cannot be required",
                hint="require CONTAINER, GVISOR or MICROVM, or leave require_isolation out",
            )
        return self is not IsolationTier.UNKNOWN and self.rank >= minimum.rank

    def __lt__(self, other: object) -> bool:
        return self.rank < other.rank if isinstance(other, IsolationTier) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.rank <= other.rank if isinstance(other, IsolationTier) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.rank > other.rank if isinstance(other, IsolationTier) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.rank >= other.rank if isinstance(other, IsolationTier) else NotImplemented


ISOLATION_RANK: Final[Mapping[IsolationTier, int]] = MappingProxyType(
    {
        IsolationTier.UNKNOWN: 0,
        IsolationTier.CONTAINER: 10,
        IsolationTier.GVISOR: 20,
        IsolationTier.MICROVM: 30,
    }
)


@dataclass(frozen=True, slots=True)
class Resources:
    """Caps of one sandbox. `None` means the backend's modest default, never unlimited.

    Attributes:
        cpu: CPU time as a number of cores; fractions are allowed.
        memory_mb: Memory in MiB.
        disk_mb: Writable disk in MiB.
        gpu: The provider's name for a kind of GPU.

    Raises:
        ConfigurationError: A number is not positive and finite.

    Example: `Resources(cpu=2, memory_mb=2048, disk_mb=512)`
    """

    cpu: float | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    gpu: str | None = None

    def __post_init__(self) -> None:
        _require_positive("cpu", self.cpu, whole=False)
        _require_positive("memory_mb", self.memory_mb, whole=True)
        _require_positive("disk_mb", self.disk_mb, whole=True)
        if self.gpu is not None and not self.gpu:
            raise ConfigurationError("Resources.gpu is empty", hint="name a GPU, or leave gpu out")


def _require_positive(name: str, value: object, *, whole: bool) -> None:
    if value is None:
        return
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise ConfigurationError(
            f"Resources.{name} is {type(value).__name__}, not a number",
            hint=f"give {name} as {'a whole number' if whole else 'a number'}, or leave it out",
        )
    if not math.isfinite(value) or value <= 0:
        raise ConfigurationError(
            f"Resources.{name} is {value}, and a cap must be positive and finite",
            hint=f"raise {name} instead of removing it; leave it out for the backend's default",
        )


@dataclass(frozen=True, slots=True)
class Meter:
    """What one execution used. There is no cost here: no provider can tell it at that moment."""

    duration_ms: int
    backend: str


@dataclass(frozen=True, slots=True)
class RichOutput:
    """One output of a code cell, as in a Jupyter mime bundle. Never made by parsing stdout."""

    mime_type: str
    data: bytes | str


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """Some bytes of a running process, exactly as it wrote them."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How an execution ended.

    Attributes:
        exit_code: The exit code; 128 + n for an end by signal n; -1 on a partial result.
        stdout: Standard output as text; bytes that are not UTF-8 are replaced.
        stderr: Standard error, likewise.
        results: Rich outputs of a code cell, `None` where the backend has none to give.
        meter: What the execution used.
        streamed: The output was delivered as a stream, so the texts are empty.
        truncated: Output beyond the cap (16 MiB a stream) was dropped.
        oom_killed: A process of this sandbox was killed for want of memory while this ran.

    Example: `(await sb.run(["ls"])).raise_for_status().stdout`
    """

    exit_code: int
    stdout: str
    stderr: str
    results: tuple[RichOutput, ...] | None = None
    meter: Meter | None = None
    streamed: bool = False
    truncated: bool = False
    oom_killed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0

    def raise_for_status(self) -> Self:
        """Return this result when it is ok.

        Raises:
            ExecutionError: The exit code is not 0.
        """
        if self.ok:
            return self
        raise ExecutionError(
            f"the execution ended with exit code {self.exit_code}",
            hint="read exc.result.stderr for the reason",
            result=self,
        )


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An entry of the sandbox's file system. What a backend cannot tell is `None`.

    Attributes:
        path: Absolute path in the sandbox.
        name: The last part of the path.
        is_dir: Whether it is a directory; a link to one is not.
        size: Bytes.
        mode: Permission bits, as in `stat.S_IMODE`.
        mtime: Last change, in seconds since the epoch.
    """

    path: str
    name: str
    is_dir: bool
    size: int | None = None
    mode: int | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True)
class ManagedSandbox:
    """A sandbox that sandboxio made, as the provider lists it."""

    id: str
    backend: str
    created_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    state: str = "unknown"
