"""What an adapter implements: primitives over one live sandbox of one provider.

A driver holds no policy. Deadlines, output caps, redaction, records, error mapping and teardown
are the kit's, written once above it. A driver is three ports, each of them optional; a port that
is absent means that the sandbox does not declare the capabilities behind it.

Whatever a driver's call raises that is not a `SandboxError` goes through `Driver.translate`.
Every awaitable must be cancellable without losing data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandboxio.errors import SandboxError
from sandboxio.models import FileInfo, OutputChunk, Resources, RichOutput

__all__ = [
    "CodePort",
    "CodeSpec",
    "DeadlineReached",
    "Driver",
    "Execution",
    "Exit",
    "FilePort",
    "OutputDropped",
    "ProcessHandle",
    "ProcessPort",
    "ProcessSpec",
    "ReadStream",
    "ShellMissing",
    "TreeStream",
]


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A command, checked by the kit: no NUL, no lone surrogate, not empty.

    Attributes:
        command: Text is for the sandbox's shell; a tuple must not pass through one.
        env: All variables for this execution, secrets included.
        cwd: Working folder, or `None` for the sandbox's own.
        open_stdin: Whether input will be written; otherwise it must read end of file at once.
        timeout: Seconds until the kit will end it, for providers that want to know.
    """

    command: str | tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    open_stdin: bool
    timeout: float


@dataclass(frozen=True, slots=True)
class CodeSpec:
    """A piece of code for a port that runs code itself.

    Attributes:
        code: The source text.
        language: The language's name, as the caller gave it.
        context_id: The caller's name for a lasting context, or `None` for a clean start.
        env: All variables for this execution, secrets included.
        timeout: Seconds until the kit will end it, for providers that want to know.
    """

    code: str = field(repr=False)
    language: str
    context_id: str | None
    env: Mapping[str, str] = field(repr=False)
    timeout: float


@dataclass(frozen=True, slots=True)
class Exit:
    """How a leader ended.

    Attributes:
        code: The exit code, 128 + n for signal n, or `None` when it cannot be known.
        oom_killed: The sandbox's count of out-of-memory kills rose while it ran.
        missing: The program was not there, so nothing has run; the code is then 127.
    """

    code: int | None
    oom_killed: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True)
class OutputDropped:
    """Some output was too large for the port to hold, so that the result is truncated."""


class Execution(Protocol):
    """Something that runs and writes: the part that processes and code share."""

    async def receive(self) -> OutputChunk | RichOutput | OutputDropped | None:
        """The next piece of output, or `None` when all of it has been delivered.

        Reading only on demand is what gives backpressure. Cancelling it loses nothing.
        """
        ...

    async def poll(self) -> Exit | None:
        """How the leader ended, or `None` while it runs. Cheap; asked while output is silent."""
        ...

    async def wait(self) -> Exit:
        """Wait for the leader's end. Called after the output has ended."""
        ...

    async def kill(self) -> None:
        """End the whole tree, descendants that changed session included, and nothing else.

        Idempotent, and safe to call from another event loop than the one that started it, since a
        stream's deadline is kept while its own loop is busy. Returning means that nothing of the
        tree runs any more; raising means that this cannot be said, and the kit then ends the whole
        sandbox.
        """
        ...

    async def aclose(self) -> None:
        """Give local resources back. Never touches the running tree and never raises.

        A call that was cancelled is followed by another one, which finishes.
        """
        ...


class ProcessHandle(Execution, Protocol):
    """A started command."""

    async def send(self, data: memoryview) -> int:
        """Write some of `data` to its standard input and return how many bytes were taken.

        It waits while the process does not read, and raises `BrokenResourceError` of anyio once it
        never will. What a cancelled call had taken is reported by the next one, which is given the
        same bytes again.
        """
        ...

    async def send_eof(self) -> None:
        """Close its standard input."""
        ...


class DeadlineReached(Exception):
    """Raised by an execution whose provider saw its `timeout` pass before the kit's clock did."""


class ShellMissing(Exception):
    """Raised by `ProcessPort.start` when text was given and the sandbox has no shell."""


class ProcessPort(Protocol):
    """Commands."""

    @property
    def shell(self) -> str:
        """The shell that runs text, such as `/bin/sh`."""
        ...

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a command.

        It must be safe to cancel: what has started by then is ended. A missing program is no
        error here but exit 127 (not executable: 126) with the reason on stderr.

        Raises:
            PathNotFound: The working folder does not exist.
            ShellMissing: Text was given and there is no shell.
        """
        ...


class CodePort(Protocol):
    """Code, where the provider runs it itself. Without it the kit feeds interpreters by stdin."""

    @property
    def stateful(self) -> bool:
        """Whether contexts last between executions."""
        ...

    def runs(self, language: str) -> bool:
        """Whether code of this language is for this port; other code is fed to an interpreter."""
        ...

    async def start(self, spec: CodeSpec) -> Execution:
        """Start a cell. A language that it lacks after all raises `CapabilityNotSupported`.

        A context that lost its state since its last cell says so once, by `output.context_lost`.
        """
        ...


class ReadStream(Protocol):
    """A file being read."""

    @property
    def size(self) -> int | None:
        """Its size in bytes as announced, if known."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class TreeStream(Protocol):
    """A directory being read as the bytes of a tar archive, made by the sandbox: hostile input.

    The first member is the directory itself; what follows is named below it.
    """

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class FilePort(Protocol):
    """Files. The kit gives absolute paths. Errors are `FileSystemError`s."""

    @property
    def owner(self) -> tuple[int, int]:
        """The uid and gid that files made by the kit's archives carry."""
        ...

    def open_read(self, path: str) -> AbstractAsyncContextManager[ReadStream]:
        """Read one regular file; links are followed inside the sandbox."""
        ...

    async def write(self, path: str, data: AsyncIterator[bytes], size: int, mode: int) -> None:
        """Create or replace a file from exactly `size` bytes, all or nothing."""
        ...

    def open_tree(self, path: str) -> AbstractAsyncContextManager[TreeStream]:
        """Read a directory with all that is in it."""
        ...

    async def write_tree(self, path: str, archive: AsyncIterator[bytes]) -> None:
        """Unpack a tar archive of ours into the directory `path`, which exists."""
        ...

    async def list(self, path: str) -> tuple[FileInfo, ...]:
        """The entries of a directory, in any order."""
        ...

    async def stat(self, path: str) -> FileInfo:
        """One path, not following a link at its end."""
        ...

    async def mkdir(self, path: str, *, parents: bool) -> None:
        """Make a directory. With `parents` an existing directory is fine."""
        ...

    async def remove(self, path: str, *, recursive: bool) -> None:
        """Remove a file, a link, or with `recursive` a tree."""
        ...

    async def rename(self, source: str, target: str) -> None:
        """Move, replacing a file."""
        ...


class Driver(Protocol):
    """One live sandbox of one provider."""

    @property
    def processes(self) -> ProcessPort | None:
        """Commands, or `None` when there are none here."""
        ...

    @property
    def code(self) -> CodePort | None:
        """Code that the provider runs itself, or `None`."""
        ...

    @property
    def files(self) -> FilePort | None:
        """Files, or `None` when there are none here."""
        ...

    @property
    def home(self) -> str:
        """The absolute path of the working folder, from which relative paths start."""
        ...

    @property
    def template(self) -> str:
        """The image or template it was made from, for messages."""
        ...

    @property
    def limits(self) -> Resources:
        """The caps that are in force, for messages."""
        ...

    @property
    def native(self) -> Any:
        """The provider SDK's own object."""
        ...

    async def alive(self) -> bool:
        """Ask the provider whether the sandbox still runs."""
        ...

    async def destroy(self) -> None:
        """End the sandbox and remove all that belongs to it. One that has ended is success."""
        ...

    async def detach(self) -> None:
        """Stop whatever would end the sandbox with this process."""
        ...

    async def aclose(self) -> None:
        """Give local resources back, leaving the sandbox as it is. Never raises."""
        ...

    def translate(self, exc: Exception) -> SandboxError | None:
        """The error of ours that a provider's exception means, or `None` if it is no such thing."""
        ...
