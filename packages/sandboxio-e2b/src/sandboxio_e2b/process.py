"""Commands in a microVM: how they are started, found again, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from e2b import AsyncCommandHandle, CommandExitException, FileType
from e2b.exceptions import (
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotRunningException,
)
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import ProcessHandle, ProcessSpec
from sandboxio.adapter.tree_kill import MARKER_VARIABLE, Numbers, end_tree
from sandboxio.adapter.validation import require_fitting
from sandboxio.errors import (
    ConnectError,
    FileSystemError,
    PathNotFound,
    SandboxError,
)
from sandboxio.release import bounded, warn_orphaned
from sandboxio_e2b.handle import E2BProcess, Listener
from sandboxio_e2b.places import followed
from sandboxio_e2b.wrapper import SHELL, wrap

__all__ = ["NO_PROFILE", "NO_TIMEOUT", "E2BProcesses"]

NO_TIMEOUT: Final = 0
"""For the SDK's timeouts: deadlines are kept here, since its own leave failed tasks behind."""

NO_PROFILE: Final = {"HOME": "/nonexistent", "BASH_ENV": ""}
"""Variables for a login shell that is to read no profile of the user's, which code can have written."""

_CROWD: Final = 1_000_000_000  # more than there can be: to stop all that root can stop would stop E2B too
_ROOT: Final = "root"
_RETRY_PAUSE: Final = 0.3
_REQUEST_SECONDS: Final = 5.0
_SCRIPT_OUTPUT_LIMIT: Final = 64 * 1024
_START_SECONDS: Final = 20.0
_LATE_SECONDS: Final = 4.0
_LATE_LOOKS: Final = 3
_LATE_PAUSE: Final = 0.2


class E2BProcesses:
    """The process port of a microVM.

    Args:
        native: The SDK's sandbox.
        home: The folder in which commands start.
        user_home: The value of `HOME`.
        env: Variables of every command; `None` if the sandbox has some that are not known here.
        numbered: Whether the shell can set the limit that carries an execution's number.
        key: What the numbers of this sandbox are sealed with.
        destroy: Ends the sandbox, when a start that was interrupted cannot be undone.
    """

    def __init__(
        self,
        native: AsyncSandbox,
        *,
        home: str,
        user_home: str,
        env: Mapping[str, str] | None,
        numbered: bool,
        key: str,
        destroy: Callable[[], Awaitable[None]],
    ) -> None:
        self._native = native
        self._home = home
        self._user_home = user_home
        self._env = dict(env or {})
        self._knows_env = env is not None
        self.numbered = numbered
        self._key = key
        self._numbers = Numbers(key)
        self._destroy = destroy
        self._killer: str | None = _ROOT

    @property
    def shell(self) -> str:
        """The shell that runs text."""
        return SHELL

    def new_marker(self) -> str:
        """A number for an execution that starts now."""
        return self._numbers.next()

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a command; see `sandboxio.adapter.driver.ProcessPort.start`.

        Raises:
            ConfigurationError: The command or a variable is longer than Linux can pass.
            FileSystemError: The working folder exists but cannot be entered.
        """
        marker, word = self.new_marker(), secrets.token_hex(16)
        variables = {"HOME": self._user_home, **self._env, **spec.env}
        hidden = {name: variables.get(name) for name in NO_PROFILE}
        line = wrap(spec.command, marker, word, hidden, restore=self._may_be_replaced(spec))
        env = {**variables, **NO_PROFILE, MARKER_VARIABLE: marker}
        require_fitting([line], env)
        listener = Listener(word)

        async def begin() -> AsyncCommandHandle[Any]:
            handle = await self._native.commands.run(
                line,
                background=True,
                envs=env,
                cwd=spec.cwd or self._home,
                on_stdout=listener.stdout,
                on_stderr=listener.stderr,
                stdin=spec.open_stdin,
                timeout=NO_TIMEOUT,
                request_timeout=NO_TIMEOUT,
                retain_output=False,
            )
            listener.attach(handle)  # before its reader takes the first step
            return handle

        starting = asyncio.ensure_future(begin())
        try:
            await asyncio.wait({starting}, timeout=_START_SECONDS)
            if not starting.done():
                raise ConnectError(f"E2B did not start a command within {_START_SECONDS:g} s")
            handle = starting.result()
        except (InvalidArgumentException, FileNotFoundException) as exc:
            if spec.cwd is None:
                raise
            raise await self._refusal(spec.cwd) from exc
        except (AuthenticationException, RateLimitException, SandboxNotRunningException):
            raise
        except BaseException:
            await self._undo(starting, marker)
            raise
        return E2BProcess(handle, listener, lambda leader: self.end_tree(marker, leader))

    def _may_be_replaced(self, spec: ProcessSpec) -> bool:
        """Whether there are variables that the login shell's profile could replace."""
        return bool(self._env or spec.env) or not self._knows_env

    async def end_tree(self, marker: str, leader: str = "") -> None:
        """End all that runs under a number.

        Raises:
            ConnectError: It cannot be said that all of it has ended.
        """
        await end_tree(self._run_script, marker, leader, numbered=self.numbered, key=self._key, crowd=_CROWD)

    async def _run_script(self, script: str, arguments: tuple[str, ...]) -> tuple[bytes, int | None]:
        """Run a script of this adapter's own, again where the service refuses for a moment.

        The caller bounds it. Ending a tree twice does no harm, and not ending it costs the sandbox.
        """
        while True:
            try:
                return await self._run_script_once(script, arguments)
            except (
                AuthenticationException,
                InvalidArgumentException,
                NotFoundException,
                SandboxNotRunningException,
            ):
                raise
            except Exception:  # the SDK has no class of its own for an end that it was not told
                await anyio.sleep(_RETRY_PAUSE)

    async def _run_script_once(self, script: str, arguments: tuple[str, ...]) -> tuple[bytes, int | None]:
        """As root where there is one, since code can have become root."""
        output = bytearray()

        def keep(text: str) -> None:
            if len(output) < _SCRIPT_OUTPUT_LIMIT:
                output.extend(text.encode())

        user = self._killer
        try:
            result = await self._native.commands.run(
                f"set -- {shlex.join(arguments)}\n{script}",
                envs=NO_PROFILE,
                user=user,
                on_stdout=keep,
                timeout=NO_TIMEOUT,
                request_timeout=NO_TIMEOUT,
                retain_output=False,
            )
        except CommandExitException as exc:
            return bytes(output), exc.exit_code
        except (InvalidArgumentException, AuthenticationException) as exc:
            if user is None or _ROOT not in str(exc):
                raise
            self._killer = None
            return await self._run_script_once(script, arguments)
        return bytes(output), result.exit_code

    async def _refusal(self, cwd: str) -> SandboxError:
        """What it means that a start was refused: mostly that its working folder is not there."""
        try:
            info = await followed(self._native, cwd, request_timeout=_REQUEST_SECONDS)
        except (FileNotFoundException, PathNotFound):
            return PathNotFound(f"the working folder {cwd} does not exist")
        words = "cannot be entered" if info.type is FileType.DIR else "is not a directory"
        return FileSystemError(
            f"the working folder {cwd} {words}", hint="give a folder that the sandbox's user may enter"
        )

    async def _undo(self, starting: asyncio.Future[AsyncCommandHandle[Any]], marker: str) -> None:
        """End what may have started behind a request that was cut off; failing that, end the sandbox."""

        async def undo() -> None:
            handle: AsyncCommandHandle[Any] | None = None
            await asyncio.wait({starting}, timeout=_LATE_SECONDS)
            if starting.done() and not starting.cancelled() and starting.exception() is None:
                handle = starting.result()
            if handle is None:
                starting.cancel()
                with contextlib.suppress(Exception, asyncio.CancelledError):
                    await starting
                await self._until_started_late(marker)
            await self.end_tree(marker)
            if handle is not None:
                with contextlib.suppress(Exception):
                    await handle.disconnect()

        await self._end_or_destroy(undo)

    async def end_or_destroy(self, process: ProcessHandle) -> None:
        """End a process of this adapter's own; failing that, end the sandbox rather than leave it running."""
        await self._end_or_destroy(process.kill)

    async def _end_or_destroy(self, end: Callable[[], Awaitable[None]]) -> None:
        for action, grace in ((end, 2 * _LATE_SECONDS), (self._destroy, _LATE_SECONDS)):
            with contextlib.suppress(Exception):
                if await bounded(action, grace=grace):
                    return
        warn_orphaned(
            self._native.sandbox_id, "e2b", "what an interrupted call had started could not be ended"
        )

    async def _until_started_late(self, marker: str) -> None:
        """Give a request that was on its way the time to arrive; its variable tells the process."""
        for look in range(_LATE_LOOKS):
            if look:
                await anyio.sleep(_LATE_PAUSE)
            with contextlib.suppress(SandboxException):
                running = await self._native.commands.list(request_timeout=_REQUEST_SECONDS)
                if any(process.envs.get(MARKER_VARIABLE) == marker for process in running):
                    return
