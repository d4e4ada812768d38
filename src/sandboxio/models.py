"""The value objects of the domain: what goes in and what comes out.

Every object is a frozen, slotted dataclass compared by value, and every sequence in one is a
tuple. Network rules live in `sandboxio.network`; nothing here performs I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum, Flag, auto
from typing import Final, Literal, Self, TypeVar

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

MOST_CORES: Final = 1_000_000
MOST_MEBIBYTES: Final = 2**40
"""Beyond what any machine has, and within what providers' numbers hold."""

K = TypeVar("K")
V = TypeVar("V")

_SHOWN: Final = 80  # characters of a value that a repr or a message shows
_LAST_LINE: Final = 200  # characters of the program's last words that an error repeats


class FrozenMapping(Mapping[K, V]):
    """A mapping that cannot be changed, and so can be hashed, copied and pickled.

    Example: `FrozenMapping({"tenant_id": "acme"})["tenant_id"]`
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


class Pipe(Enum):
    """The type of `PIPE`, so that a type checker can tell it from bytes and text.

    Example: `def feed(stdin: bytes | Pipe = PIPE) -> None: ...`
    """

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


ISOLATION_RANK: Final[Mapping[IsolationTier, int]] = FrozenMapping(
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
        ConfigurationError: A number is not positive, or beyond any machine.

    Example: `Resources(cpu=2, memory_mb=2048, disk_mb=512)`
    """

    cpu: float | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    gpu: str | None = None

    def __post_init__(self) -> None:
        _require_cap("cpu", self.cpu, MOST_CORES, whole=False)
        _require_cap("memory_mb", self.memory_mb, MOST_MEBIBYTES, whole=True)
        _require_cap("disk_mb", self.disk_mb, MOST_MEBIBYTES, whole=True)
        if self.gpu is not None and not self.gpu:
            raise ConfigurationError("Resources.gpu is empty", hint="name a GPU, or leave gpu out")


def _require_cap(name: str, value: object, most: int, *, whole: bool) -> None:
    if value is None:
        return
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):  # a bool counts as an int
        raise ConfigurationError(
            f"Resources.{name} is {type(value).__name__}, not a number",
            hint=f"give {name} as {'a whole number' if whole else 'a number'}, or leave it out",
        )
    if not is_positive(value) or value > most:
        raise ConfigurationError(
            f"Resources.{name} is {shown(value)}, and a cap must be positive and at most {most}",
            hint=f"raise {name} within that instead of removing it; leave it out for the backend's default",
        )


def is_positive(value: float) -> bool:
    """Whether a number is positive and finite. One that no float can hold is not: it bounds nothing.

    Example: `is_positive(10**400)` is false.
    """
    try:
        return math.isfinite(value) and value > 0
    except OverflowError:
        return False


def shown(value: object) -> str:
    """A value for a message or a repr: short, and a text that was cut tells its length.

    Example: `shown("a" * 5000)`
    """
    if isinstance(value, (str, bytes)):
        if len(value) <= _SHOWN:
            return repr(value)
        unit = "bytes" if isinstance(value, bytes) else "characters"
        return f"{value[:_SHOWN]!r}… ({len(value)} {unit})"
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return f"a huge {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class Meter:
    """What one execution used. There is no cost here: no provider can tell it at that moment.

    Attributes:
        duration_ms: Wall time in milliseconds.
        backend: The backend's name.

    Example: `print(result.meter.duration_ms if result.meter else "unknown")`
    """

    duration_ms: int
    backend: str


@dataclass(frozen=True, slots=True, repr=False)
class RichOutput:
    """One output of a code cell, as in a Jupyter mime bundle. Never made by parsing stdout.

    Attributes:
        mime_type: What it is, such as `image/png`.
        data: Text for a textual type, bytes for any other.

    Example: `[output for output in result.results or () if output.mime_type == "image/png"]`
    """

    mime_type: str
    data: bytes | str

    def __repr__(self) -> str:
        return f"RichOutput({shown(self.mime_type)}, {shown(self.data)})"


@dataclass(frozen=True, slots=True, repr=False)
class OutputChunk:
    """Some bytes of a running process, exactly as it wrote them.

    Attributes:
        stream: `"stdout"` or `"stderr"`.
        data: The bytes. A character or a line may end in the next chunk.

    Example: `async for chunk in proc: sys.stdout.buffer.write(chunk.data)`
    """

    stream: Literal["stdout", "stderr"]
    data: bytes

    def __repr__(self) -> str:
        return f"OutputChunk({self.stream!r}, {shown(self.data)})"


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        known = [f"exit_code={self.exit_code}"]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if field.name == "results":
                known += [f"results=<{len(value)} outputs>"] if value is not None else []
            elif value or isinstance(value, str):
                known.append(f"{field.name}={shown(value)}")
        return f"ExecResult({', '.join(known)})"

    @property
    def ok(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0

    def raise_for_status(self) -> Self:
        """Return this result when it is ok.

        Raises:
            ExecutionError: The exit code is not 0. The message ends with the last line of stderr,
                of which 200 characters at most.
        """
        if self.ok:
            return self
        reason = self._last_words()
        raise ExecutionError(
            f"the execution ended with exit code {self.exit_code}{f': {reason}' if reason else ''}",
            hint="read exc.result.stderr for the reason",
            result=self,
        )

    def _last_words(self) -> str:
        lines = self.stderr[-64 * _LAST_LINE :].rstrip().splitlines()
        line = "".join(c if c.isprintable() else " " for c in lines[-1].strip()) if lines else ""
        return line if len(line) <= _LAST_LINE else f"{line[:_LAST_LINE]}…"


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

    Example: `[info.name for info in await sb.files.ls() if not info.is_dir]`
    """

    path: str
    name: str
    is_dir: bool
    size: int | None = None
    mode: int | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True)
class ManagedSandbox:
    """A sandbox that sandboxio made, as the provider lists it.

    Attributes:
        id: The provider's id.
        backend: The backend's name.
        created_at: When it was created, or `None` if the provider cannot tell.
        expires_at: When its lifetime ends, or `None`.
        metadata: The labels given at creation, without the library's own. It cannot be changed.
        state: The provider's word for its state, such as `running` or `exited`.

    Example: `[old for old in await backend.list_managed() if old.state == "exited"]`
    """

    id: str
    backend: str
    created_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = FrozenMapping()
    state: str = "unknown"

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", FrozenMapping(self.metadata))
