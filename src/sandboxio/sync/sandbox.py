"""The synchronous sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sandboxio.api import enter
from sandboxio.errors import SandboxGone
from sandboxio.models import Capability, ExecResult, IsolationTier, Pipe
from sandboxio.release import warn_orphaned
from sandboxio.sync.files import SyncFileSystem
from sandboxio.sync.process import SyncProcess

if TYPE_CHECKING:
    from sandboxio.protocols import AsyncSandbox
    from sandboxio.sync.loop import LoopThread

__all__ = ["SyncSandbox"]


class SyncSandbox:
    """One live sandbox: `AsyncSandbox` without `await`. It owns a thread until its context is left.

    Without a `with` block, `kill()` or `detach()` ends the thread, and the handle is closed. One that
    is forgotten ends its thread with a `ResourceWarning`, and leaves the sandbox to its lifetime.

    Calls may come from several threads. Interrupting one (KeyboardInterrupt) ends what it had
    started in the sandbox. Errors are those of the asynchronous methods; a handle that was closed
    raises `SandboxGone`.

    Example:
        with sandboxio.create_sync() as sb:
            print(sb.run_code("print(6 * 7)").stdout)
    """

    def __init__(self, sandbox: AsyncSandbox, loop: LoopThread, *, owned: bool) -> None:
        self._sandbox = sandbox
        self._loop = loop
        self._owned = owned
        self._entered = False
        self._ended = False
        loop.serves(f"the {sandbox.backend} sandbox {sandbox.id}")

    def __repr__(self) -> str:
        return f"<SyncSandbox of {self._sandbox!r}>"

    @property
    def id(self) -> str:
        """The provider's own id."""
        return self._sandbox.id

    @property
    def backend(self) -> str:
        """The name of the backend, for display. Branch on capabilities instead."""
        return self._sandbox.backend

    @property
    def capabilities(self) -> Capability:
        """What this sandbox can do."""
        return self._sandbox.capabilities

    @property
    def isolation(self) -> IsolationTier:
        """What was verified about its isolation."""
        return self._sandbox.isolation

    @property
    def metadata(self) -> Mapping[str, str]:
        """The labels given at creation."""
        return self._sandbox.metadata

    @property
    def files(self) -> SyncFileSystem:
        """The file system.

        Raises:
            CapabilityNotSupported: FILESYSTEM is not declared.
        """
        return SyncFileSystem(self._sandbox.files, self._loop)

    @property
    def native(self) -> Any:
        """The provider SDK's own object. Outside this library's version promise.

        It may be bound to the loop of this sandbox's own thread.
        """
        return self._sandbox.native

    def run(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | None = None,
    ) -> ExecResult:
        """Run a command to its end and return what it wrote; see `AsyncSandbox.run`.

        Raises:
            ExecutionTimeout: The deadline passed; the whole process tree was ended.
            ResourceLimitExceeded: It was killed for want of memory.
            PathNotFound: `cwd` does not exist.
            SandboxGone: The sandbox has ended.
            CapabilityNotSupported: RUN_COMMAND is not declared, or there is no shell for text.
        """
        return self._loop.call(
            partial(self._sandbox.run, cmd, timeout=timeout, env=env, cwd=cwd, stdin=stdin)
        )

    def run_code(
        self,
        code: str,
        *,
        language: str = "python",
        context_id: str | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a piece of code; see `AsyncSandbox.run_code`.

        Raises:
            CapabilityNotSupported: The language has no interpreter here, or a `context_id` was
                given and STATEFUL_CODE is not declared.
            ExecutionTimeout, ResourceLimitExceeded, SandboxGone: As for `run`.
        """
        return self._loop.call(
            partial(
                self._sandbox.run_code,
                code,
                language=language,
                context_id=context_id,
                timeout=timeout,
                env=env,
            )
        )

    def stream(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | Pipe | None = None,
    ) -> SyncProcess:
        """Prepare a command whose output is read while it runs: `with sb.stream(…) as proc`.

        Arguments and errors are those of `run`; `stdin=PIPE` lets `proc.write()` feed it.
        """
        process = self._sandbox.stream(cmd, timeout=timeout, env=env, cwd=cwd, stdin=stdin)
        return SyncProcess(process, self._loop)

    def kill(self) -> None:
        """End the sandbox. Does nothing when it has ended.

        Raises:
            ConnectError: The provider refused or did not answer.
            SandboxGone: The handle was closed without ending the sandbox.
        """
        if self._ended and not self._loop.alive:
            return
        self._loop.call(self._sandbox.kill)
        self._ended = True
        self._close_outside_a_block()

    def detach(self) -> str:
        """Give up ownership: the sandbox lives on to the end of its lifetime. Returns its id.

        Raises:
            SandboxGone: The sandbox has ended, or the handle was closed.
        """
        sandbox_id = self._loop.call(self._sandbox.detach)
        self._owned = False
        self._close_outside_a_block()
        return sandbox_id

    def _close_outside_a_block(self) -> None:
        if not self._entered:
            self._loop.stop()

    def __enter__(self) -> Self:
        try:
            self._loop.call(partial(enter, self._sandbox, owned=self._owned))
        except BaseException:
            self._loop.stop()
            raise
        self._entered = True
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            if self._loop.alive:
                try:
                    return self._loop.call(partial(self._sandbox.__aexit__, exc_type, exc, traceback))
                except SandboxGone:
                    if self._loop.alive:  # else it has ended since the look above
                        raise
            if self._owned and not self._ended:
                warn_orphaned(self.id, self.backend, "the loop that held it has ended")
            return None
        finally:
            self._ended = self._ended or self._owned
            self._loop.stop()
