"""What the server's HTTP half asks of the half that really executes.

The HTTP half speaks the wire protocol and holds no process; the machine half is one sandbox of ours
with an agent in it, and knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = [
    "Context",
    "Egress",
    "Ended",
    "Entry",
    "Files",
    "Kernels",
    "Machine",
    "MachineError",
    "Output",
    "Process",
    "ProcessConfig",
]


class MachineError(Exception):
    """A request that the machine refuses, by Connect's word for it.

    Attributes:
        code: `not_found`, `already_exists`, `invalid_argument`, `permission_denied`, `internal`,
            `resource_exhausted`, `unavailable`, `failed_precondition`, `unimplemented`, …
        message: In words.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Egress:
    """What a machine may reach. With `open` false and no host, nothing.

    Attributes:
        open: Everything may be reached.
        hosts: Otherwise these names (`*.` for every name below one), by the Host header on port 80 and
            by the TLS server name on port 443.
        addresses: Addresses or networks that may be reached on every port.
    """

    open: bool
    hosts: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """A piece that a process wrote, at most 32 KiB."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True)
class Ended:
    """The leader has ended and its pipes are closed.

    Attributes:
        exit_code: -1 when it was ended by a signal.
        exited: Whether it ended by itself.
        status: `exit status 3` or `signal: killed`.
    """

    exit_code: int
    exited: bool
    status: str


@dataclass(frozen=True)
class ProcessConfig:
    """How a process was started."""

    cmd: str
    args: Sequence[str]
    envs: Mapping[str, str]
    cwd: str | None


class Process(Protocol):
    """A process that was started; it lives on when nobody listens."""

    @property
    def pid(self) -> int:
        """Its process id inside the machine."""
        ...

    @property
    def config(self) -> ProcessConfig:
        """How it was started."""
        ...

    def events(self) -> AsyncIterator[Output | Ended]:
        """What it writes, then its end. The first listener gets all since the start, a later one what
        comes from now on. A process whose only listener is slow waits for it; output that nobody
        listens to any more is dropped."""
        ...

    async def send_input(self, data: bytes) -> None:
        """Write to its standard input; waits while it does not read."""
        ...

    async def close_input(self) -> None:
        """Let it read end of file."""
        ...

    async def signal(self, name: str) -> None:
        """`SIGNAL_SIGKILL` or `SIGNAL_SIGTERM`, to the leader alone."""
        ...


@dataclass(frozen=True)
class Entry:
    """A path as envd's EntryInfo has it; of a link, `type` and `mode` are its target's."""

    name: str
    type: Literal["FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY", "FILE_TYPE_SYMLINK", "FILE_TYPE_UNSPECIFIED"]
    path: str
    size: int
    mode: int
    permissions: str
    owner: str
    group: str
    modified_at: float
    symlink_target: str | None = None


class Files(Protocol):
    """The machine's files. Relative paths start at its home. Missing paths are `not_found`."""

    async def stat(self, path: str) -> Entry: ...
    async def list(self, path: str, depth: int) -> Sequence[Entry]: ...
    async def make_dir(self, path: str) -> Entry:
        """With parents; an existing directory is `already_exists`."""
        ...

    async def move(self, source: str, destination: str) -> Entry: ...
    async def remove(self, path: str) -> None:
        """Whole trees too; a missing path is no error."""
        ...

    def read(self, path: str) -> AsyncIterator[bytes]:
        """A regular file, links followed; anything else is `invalid_argument`."""
        ...

    async def size(self, path: str) -> int: ...

    async def write(self, path: str, data: AsyncIterator[bytes]) -> Entry:
        """Replace the content in place, making missing parents. A directory is `invalid_argument`."""
        ...


@dataclass(frozen=True)
class Context:
    """A code context."""

    id: str
    language: str
    cwd: str


class Kernels(Protocol):
    """Code contexts, each a process of its own. One context runs its cells one after the other."""

    async def open(self, language: str, cwd: str | None) -> Context:
        """A language without a kernel is `invalid_argument`."""
        ...

    def has(self, context_id: str) -> bool:
        """Whether it is open."""
        ...

    async def contexts(self) -> Sequence[Context]: ...
    async def restart(self, context_id: str) -> None: ...
    async def close(self, context_id: str) -> None: ...

    def execute(
        self, context_id: str, code: str, env_vars: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The messages of one cell as they go over the wire, `end_of_execution` included.

        Closing the iterator early interrupts the kernel (SIGINT), as a lost connection does.
        """
        ...


class Machine(Protocol):
    """One running machine."""

    @property
    def home(self) -> str: ...
    @property
    def files(self) -> Files: ...
    @property
    def kernels(self) -> Kernels: ...
    async def start(self, config: ProcessConfig, *, stdin: bool) -> Process:
        """A missing `cwd` or program is `invalid_argument`."""
        ...

    @property
    def processes(self) -> Mapping[int, Process]:
        """The live ones by process id."""
        ...

    async def write_hosts(self, content: bytes) -> None:
        """Replace `/etc/hosts`, which takes root: the one file that root may write here."""
        ...

    async def set_egress(self, egress: Egress) -> None:
        """One that was booted with nothing open has no network, and cannot be opened."""
        ...

    async def shutdown(self) -> None:
        """End it and all that belongs to it."""
        ...


class Booting(Protocol):
    """Makes machines."""

    async def __call__(
        self, *, template: str, envs: Mapping[str, str], egress: Egress, lifetime: float
    ) -> Machine: ...
