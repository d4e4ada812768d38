"""Commands in a microVM: how they are started, found again, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from e2b import AsyncCommandHandle, CommandExitException
from e2b.exceptions import (
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    RateLimitException,
    SandboxException,
    SandboxNotRunningException,
)
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import ProcessHandle, ProcessSpec
from sandboxio.adapter.tree_kill import MARKER_VARIABLE, end_tree, new_marker
from sandboxio.errors import ConfigurationError, ConnectError, FileSystemError, PathNotFound
from sandboxio.release import bounded, warn_orphaned
from sandboxio_e2b.handle import E2BProcess, Listener
from sandboxio_e2b.wrapper import SHELL, wrap

__all__ = ["NO_TIMEOUT", "E2BProcesses"]

LINE_LIMIT: Final = 128 * 1024 - 1
"""The longest line that Linux passes to the shell, in bytes, and the longest variable."""

NO_TIMEOUT: Final = 0
"""For the SDK's timeouts: deadlines are kept here, since its own leave failed tasks behind."""

_CROWD: Final = 1_000_000_000
_ROOT: Final = "root"
_NO_PROFILE: Final = "/nonexistent"
_SCRIPT_REQUEST_SECONDS: Final = 5.0
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
        env: Mapping[str, str] | None,
        numbered: bool,
        key: str,
        destroy: Callable[[], Awaitable[None]],
    ) -> None:
        self._native = native
        self._home = home
        self._env = dict(env or {})
        self._knows_env = env is not None
        self.numbered = numbered
        self._key = key
        self._destroy = destroy
        self._killer: str | None = _ROOT

    @property
    def shell(self) -> str:
        """The shell that runs text."""
        return SHELL

    def new_marker(self) -> str:
        """A number for an execution that starts now."""
        return new_marker(self._key)

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a command; see `sandboxio.adapter.driver.ProcessPort.start`.

        Raises:
            ConfigurationError: The command or a variable is longer than Linux can pass.
            FileSystemError: The working folder exists but cannot be entered.
        """
        marker, word = self.new_marker(), secrets.token_hex(16)
        variables = {**self._env, **spec.env}
        line = wrap(spec.command, marker, word, restore=bool(variables) or not self._knows_env)
        env = {**variables, MARKER_VARIABLE: marker}
        _require_fitting(line, env)
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
            raise await self._refused(spec.cwd, exc) from exc
        except (AuthenticationException, RateLimitException, SandboxNotRunningException):
            raise
        except BaseException:
            await self._undo(starting, marker)
            raise
        return E2BProcess(handle, listener, lambda leader: self.end_tree(marker, leader))

    async def end_tree(self, marker: str, leader: str = "") -> None:
        """End all that runs under a number.

        Raises:
            ConnectError: It cannot be said that all of it has ended.
        """
        await end_tree(self._run_script, marker, leader, numbered=self.numbered, key=self._key, crowd=_CROWD)

    async def _run_script(self, script: str, arguments: tuple[str, ...]) -> tuple[bytes, int | None]:
        """Run a script of this adapter's own, as root where there is one: code can have become root.

        No profile of the sandbox's user is read, which that code can have written.
        """
        line = f"set -- {shlex.join(arguments)}\n{script}"
        output = bytearray()

        def keep(text: str) -> None:
            if len(output) < _SCRIPT_OUTPUT_LIMIT:
                output.extend(text.encode())

        try:
            result = await self._native.commands.run(
                line,
                envs={"HOME": _NO_PROFILE},
                user=self._killer,
                on_stdout=keep,
                timeout=NO_TIMEOUT,
                request_timeout=NO_TIMEOUT,
                retain_output=False,
            )
        except CommandExitException as exc:
            return bytes(output), exc.exit_code
        except (InvalidArgumentException, AuthenticationException):
            if self._killer is None:
                raise
            self._killer = None
            return await self._run_script(script, arguments)
        return bytes(output), result.exit_code

    async def _refused(self, cwd: str | None, exc: SandboxException) -> Exception:
        """What a start that was refused means: mostly that the working folder is not there."""
        if cwd is None:
            return exc
        try:
            info = await self._native.files.get_info(cwd, request_timeout=_SCRIPT_REQUEST_SECONDS)
        except FileNotFoundException:
            return PathNotFound(f"the working folder {cwd} does not exist")
        if info.symlink_target is None and info.type is not None and info.type.value == "dir":
            words = "cannot be entered"
        else:
            words = "is not a directory"
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

        ended = False
        with contextlib.suppress(Exception):
            ended = await bounded(undo, grace=2 * _LATE_SECONDS)
        if not ended:
            with contextlib.suppress(Exception):
                ended = await bounded(self._destroy)
        if not ended:
            warn_orphaned(self._native.sandbox_id, "e2b", "an interrupted start could not be undone")

    async def _until_started_late(self, marker: str) -> None:
        """Give a request that was on its way the time to arrive; its variable tells the process."""
        for look in range(_LATE_LOOKS):
            if look:
                await anyio.sleep(_LATE_PAUSE)
            running = await self._native.commands.list(request_timeout=_SCRIPT_REQUEST_SECONDS)
            if any(process.envs.get(MARKER_VARIABLE) == marker for process in running):
                return


def _require_fitting(line: str, env: Mapping[str, str]) -> None:
    if len(line.encode()) > LINE_LIMIT:
        raise ConfigurationError(
            f"the command takes {len(line.encode())} bytes, more than Linux passes to a shell ({LINE_LIMIT})",
            hint="write it to a file with files.write(), pass it as stdin, or use run_code() for code",
        )
    for name, value in env.items():
        if len(name.encode()) + len(value.encode()) + 1 > LINE_LIMIT:
            raise ConfigurationError(
                f"the variable {name} is longer than Linux passes to a program ({LINE_LIMIT} bytes)",
                hint="write its value to a file with files.write()",
            )
