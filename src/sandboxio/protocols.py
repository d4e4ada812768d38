"""The ports: what a backend, a sandbox, its processes and its files offer.

They are `Protocol`s, so a third party implements them without importing a base class. What is
promised about their behaviour is executable in `sandboxio.testing.suite`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from sandboxio.models import (
    Capability,
    ExecResult,
    FileInfo,
    IsolationTier,
    ManagedSandbox,
    OutputChunk,
    Pipe,
    Resources,
)
from sandboxio.network import NetworkPolicy

if TYPE_CHECKING:
    from sandboxio.diagnosis import Check

__all__ = [
    "AsyncFileSystem",
    "AsyncSandbox",
    "Backend",
    "DiagnosableBackend",
    "IsolationVerifier",
    "Process",
    "ReapableBackend",
]


class Process(Protocol):
    """A running process, served as a stream. It starts on enter and has ended on exit.

    Order holds within stdout and within stderr, not between the two. A reader that stops reading
    stops the process in the end: nothing is buffered without bound. One consumer reads it at a
    time: either one `async for` or one `wait()`; `write`, `close_stdin` and `kill` may come from
    another task.

    Example:
        async with sb.stream(["make"]) as proc:
            async for chunk in proc:
                sys.stdout.buffer.write(chunk.data)
        print(proc.returncode)
    """

    @property
    def returncode(self) -> int | None:
        """The exit code, or `None` while it runs."""
        ...

    async def wait(self) -> ExecResult:
        """Drain what is unread and return the result, with `streamed=True` and empty texts.

        Raises:
            ExecutionTimeout: The deadline passed; the process tree was ended.
            ResourceLimitExceeded: It was killed for want of memory.
            SandboxGone: The sandbox ended meanwhile.
        """
        ...

    async def kill(self) -> None:
        """End the whole process tree. Does nothing when it has ended."""
        ...

    async def write(self, data: bytes | str) -> None:
        """Write to standard input; text as UTF-8. Waits while the process does not read.

        Raises:
            ConfigurationError: `stdin=PIPE` was not given, or the input was closed.
            ExecutionError: The process has ended or reads no more.
            SandboxGone: The sandbox ended meanwhile.
        """
        ...

    async def close_stdin(self) -> None:
        """Let the process read end of file. Does nothing the second time."""
        ...

    def __aiter__(self) -> AsyncIterator[OutputChunk]: ...
    async def __anext__(self) -> OutputChunk: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...


class AsyncFileSystem(Protocol):
    """The sandbox's files. A relative path means the same place as in `run`.

    Every method raises `PathNotFound` for a missing path, `FileSystemError` for any other
    refusal, and `SandboxGone` when the sandbox has ended.

    Example: `await sb.files.write("in.txt", "some text")`
    """

    async def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """The whole content of a file. Links are followed.

        Args:
            path: The file.
            max_bytes: Refuse a larger one, having taken no more than this into memory. The default is
                2 GiB, and nothing above that is read: `download` is for large files.

        Raises:
            FileSystemError: It is larger, or cannot be read.
        """
        ...

    async def write(self, path: str, data: bytes | str) -> None:
        """Create or replace a file; its parent must exist. Text is written as UTF-8."""
        ...

    async def upload(self, local: str | os.PathLike[str], path: str) -> None:
        """Copy a local file or directory into the sandbox, as `path` itself. It streams.

        Raises:
            FileSystemError: The local side cannot be read, or the sandbox's side not be written.
        """
        ...

    async def download(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copy a file or directory out, as `local` itself. It streams.

        A file replaces a file at `local`. A directory needs `local` to be missing or an empty
        directory. Nothing is ever written outside `local`: names or links that would lead out of
        it, and devices, fail the whole download, and then nothing is left of it.

        Raises:
            PathNotFound: `path` does not exist.
            FileSystemError: `local` is taken, or the copy would lead outside it.
        """
        ...

    async def ls(self, path: str = ".") -> tuple[FileInfo, ...]:
        """The entries of a directory, sorted by name."""
        ...

    async def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Make a directory; with `parents` also what is missing above, and an existing one is fine."""
        ...

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or link; a directory only with `recursive`."""
        ...

    async def exists(self, path: str) -> bool:
        """Whether the path exists; a dangling link does."""
        ...

    async def stat(self, path: str) -> FileInfo:
        """What is known about one path."""
        ...

    async def rename(self, source: str, target: str) -> None:
        """Move within the sandbox, replacing a file at `target`."""
        ...


class AsyncSandbox(Protocol):
    """One live sandbox. Leaving its context ends it if it was created, never if it was connected.

    Example:
        async with sandboxio.create() as sb:
            print((await sb.run_code("print(6 * 7)")).stdout)
    """

    @property
    def id(self) -> str:
        """The provider's own id."""
        ...

    @property
    def backend(self) -> str:
        """The name of the backend, for display. Branch on capabilities instead."""
        ...

    @property
    def capabilities(self) -> Capability:
        """What this sandbox can do."""
        ...

    @property
    def isolation(self) -> IsolationTier:
        """What was verified about its isolation."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """The labels given at creation."""
        ...

    @property
    def files(self) -> AsyncFileSystem:
        """The file system.

        Raises:
            CapabilityNotSupported: FILESYSTEM is not declared.
        """
        ...

    @property
    def native(self) -> Any:
        """The provider SDK's own object. Outside this library's version promise."""
        ...

    async def run(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | None = None,
    ) -> ExecResult:
        """Run a command to its end and return what it wrote.

        A sequence never passes through a shell; text does. Without `stdin` the command reads end
        of file at once. At most 16 MiB of each stream are kept.

        Args:
            cmd: A program and its arguments, or a line for the sandbox's shell.
            timeout: Seconds; `None` inherits the sandbox's own timeout.
            env: Variables beside those given at creation.
            cwd: Working folder; the default is the sandbox's own.
            stdin: Input, text as UTF-8.

        Raises:
            ExecutionTimeout: The deadline passed; the whole process tree was ended.
            ResourceLimitExceeded: It was killed for want of memory.
            PathNotFound: `cwd` does not exist.
            SandboxGone: The sandbox has ended.
            CapabilityNotSupported: RUN_COMMAND is not declared, or there is no shell for text.
        """
        ...

    async def run_code(
        self,
        code: str,
        *,
        language: str = "python",
        context_id: str | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a piece of code. It starts clean every time unless `context_id` names a context.

        Args:
            code: The source text, of any length.
            language: The name of the language.
            context_id: A name of the caller's choice; later uses share the context's state.
            timeout: Seconds; `None` inherits the sandbox's own timeout.
            env: Variables beside those given at creation.

        Raises:
            CapabilityNotSupported: The language has no interpreter here, or a `context_id` was
                given and STATEFUL_CODE is not declared.
            ExecutionTimeout, ResourceLimitExceeded, SandboxGone: As for `run`.
        """
        ...

    def stream(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | Pipe | None = None,
    ) -> Process:
        """Prepare a command whose output is read while it runs: `async with sb.stream(…) as proc`.

        Arguments and errors are those of `run`; `stdin=PIPE` lets `proc.write()` feed it.
        """
        ...

    async def kill(self) -> None:
        """End the sandbox. Does nothing when it has ended.

        Raises:
            ConnectError: The provider refused or did not answer.
        """
        ...

    async def detach(self) -> str:
        """Give up ownership: the sandbox lives on to the end of its lifetime. Returns its id."""
        ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...


class Backend(Protocol):
    """A provider of sandboxes. It is made by the registry from its configuration.

    Example: `backend = sandboxio.backend_for("docker://")`
    """

    @property
    def name(self) -> str:
        """The name in a DSN, such as `docker`."""
        ...

    @property
    def capabilities(self) -> Capability:
        """What its sandboxes usually can do; the sandbox's own word counts."""
        ...

    @property
    def isolation(self) -> IsolationTier:
        """The tier that `create` will give, as far as it is known beforehand."""
        ...

    async def create(
        self,
        *,
        template: str | None,
        resources: Resources | None,
        network: NetworkPolicy | None,
        env: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None,
        timeout: float,
        metadata: Mapping[str, str] | None,
    ) -> AsyncSandbox:
        """Provide a usable sandbox whose policy and caps are in force, or raise.

        `sandboxio.create` calls it with everything checked; its arguments mean the same here.

        Raises:
            CapabilityNotSupported: It cannot honour what was asked. Nothing was created.
            CreationError, CreateTimeout, ConnectError, AuthError, RateLimitError: It failed, and
                nothing was left behind.
        """
        ...

    async def connect(self, sandbox_id: str) -> AsyncSandbox:
        """A handle to a sandbox that exists.

        Raises:
            SandboxGone: There is none of this id, or it has ended.
        """
        ...


@runtime_checkable
class IsolationVerifier(Protocol):
    """A backend whose tier depends on what its provider answers, not on its configuration alone.

    Example: `if isinstance(backend, IsolationVerifier): tier = await backend.verify_isolation()`
    """

    async def verify_isolation(self) -> IsolationTier:
        """Ask the provider which tier `create` will give, without provisioning anything."""
        ...


@runtime_checkable
class ReapableBackend(Protocol):
    """A backend that can find and end what sandboxio made.

    Example:
        backend = sandboxio.backend_for("docker://")
        if isinstance(backend, ReapableBackend):
            for managed in await backend.list_managed():
                print(managed.id, managed.state)
    """

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        """Every sandbox of ours at the provider, ended ones that still exist included.

        Raises:
            ConnectError: The provider does not answer.
        """
        ...

    async def kill_managed(self, sandbox_id: str) -> None:
        """End one of them and all that belongs to it. One that is gone is success.

        Raises:
            ConnectError: The provider refused or does not answer, or the sandbox is not ours.
        """
        ...


@runtime_checkable
class DiagnosableBackend(Protocol):
    """A backend that can say what state it is in.

    Example: `if isinstance(backend, DiagnosableBackend): checks = await backend.diagnose()`
    """

    async def diagnose(self) -> tuple[Check, ...]:
        """Checks for `sandboxio doctor`: bounded, free of charge, and without any secret."""
        ...
