"""Commands in a container: how they are started, told apart, fed and ended.

A command starts through a few lines of shell that put a number on it (see `sandboxio.adapter.tree_kill`),
enter the working folder, take the caller's variables (see `sandboxio_docker.environment`), see whether
the program exists, report all that in one line, and give way to the command with `exec`. Another
process of the sandbox could write such a line in its stead, so a line that says that nothing runs is
believed only when the engine says so too.
In an image without a shell a tuple is started directly, and ending it ends the sandbox.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import anyio

from sandboxio.adapter.driver import ProcessHandle, ProcessSpec, ShellMissing
from sandboxio.adapter.tree_kill import MARKER_VARIABLE, Numbers
from sandboxio.adapter.validation import require_fitting
from sandboxio.errors import (
    ConfigurationError,
    ConnectError,
    FileSystemError,
    PathNotFound,
    ResourceLimitExceeded,
    SandboxGone,
)
from sandboxio.models import OutputChunk
from sandboxio.release import uninterrupted, warn_orphaned
from sandboxio_docker.container import SHELL, Attachment, Container, ExecState
from sandboxio_docker.environment import assignments, carried, stored_names
from sandboxio_docker.handle import DockerProcess, FinishedProcess, read_status
from sandboxio_docker.kill import kill_tree
from sandboxio_docker.oom import OomSince, OomWatch
from sandboxio_docker.stream import ByteStream

__all__ = ["DockerProcesses"]

_NUMBERED: Final = r"""
ulimit -x "$1" 2>/dev/null || ulimit -w "$1" 2>/dev/null || [ "$SANDBOXIO_EXECUTION" ] || {
    echo unnumbered
    exit 118
}
if [ "$2" ] && ! cd -- "$2" 2>/dev/null; then
    if [ -e "$2" ]; then echo refused; else echo nowhere; fi
    exit 118
fi
shift 2
"""
_CHECKED: Final = r"""
case $1 in
*/*)
    [ -e "$1" ] || { echo missing; exit 118; }
    [ -f "$1" ] && [ -x "$1" ] || { echo unusable; exit 118; }
    ;;
*) command -v "$1" >/dev/null 2>&1 || { echo missing; exit 118; } ;;
esac
echo "ready $$"
"""
# All of a sandbox's commands are equally nice, which costs them nothing: their group's share of the
# machine is what it was. But it lets the shell that ends a fork bomb run before 256 others.
_AS_NICE: Final = r"""
command -v nice >/dev/null 2>&1 && exec nice -n 19 {command}
exec {command}
"""
_WITHOUT_VARIABLES: Final = _NUMBERED + _CHECKED + _AS_NICE.format(command='"$@"')
# Behind the caller's variables stands a shell of its own, which uses no program but the command.
_BEFORE_VARIABLES: Final = _NUMBERED + _AS_NICE.format(command='/bin/sh -c "$@"')
_BEHIND_VARIABLES: Final = _CHECKED + 'exec "$@"\n'

ENGINE_TEXT: Final = b"OCI runtime exec failed"
_NOT_BEGUN: Final = (1, 126, 127, 128)
_BEGIN_PAUSE: Final = 0.005
_CONFIRM_TRIES: Final = 200
_WRAPPER_WORDS: Final = ("missing", "unusable", "nowhere", "refused", "unnumbered")
_UNDO_SECONDS: Final = 5.0
_MISSING_PROGRAM: Final = ("no such file or directory", "executable file not found", "permission denied")


_NOT_STARTED_CODE: Final = 118
"""What the wrapper ends with when it did not become the command; the engine confirms its word."""


class DockerProcesses:
    """The process port of a container.

    Args:
        container: The container.
        oom: What knows about kills for want of memory.
        pids_limit: The cap on processes, for messages.
        has_shell: Whether the image has `/bin/sh`.
        env: The caller's variables of every command.
        numbered: Whether the runtime keeps the limit that carries an execution's number.
        key: What the numbers of this sandbox are sealed with; it never enters the sandbox.
        destroy: Ends the sandbox: the only way to end a process without a shell's help.
    """

    def __init__(
        self,
        container: Container,
        oom: OomWatch,
        *,
        pids_limit: int,
        has_shell: bool,
        env: Mapping[str, str],
        numbered: bool,
        key: str,
        destroy: Callable[[], Awaitable[None]],
    ) -> None:
        self._container = container
        self._oom = oom
        self._pids_limit = pids_limit
        self._has_shell = has_shell
        self._env = env
        self._numbered = numbered
        self._key = key
        self._numbers = Numbers(key)
        self._destroy = destroy
        self._open: set[ByteStream] = set()

    @property
    def shell(self) -> str:
        """The shell that runs text."""
        return SHELL

    def abort(self) -> None:
        """Break off every connection: a container whose output nobody reads takes long to remove."""
        for stream in tuple(self._open):
            stream.abort()

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a command; see `sandboxio.adapter.driver.ProcessPort.start`.

        Raises:
            ConfigurationError: An argument or variable is longer than Linux can pass.
            FileSystemError: The working folder exists but cannot be entered.
            ResourceLimitExceeded: The sandbox has no process left to give.
        """
        return await self._start(replace(spec, env={**self._env, **spec.env}))

    async def start_own(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a script of this adapter's own, without the caller's variables; else like `start`."""
        return await self._start(spec)

    async def _start(self, spec: ProcessSpec) -> ProcessHandle:
        is_text = isinstance(spec.command, str)
        command = (SHELL, "-c", spec.command) if isinstance(spec.command, str) else spec.command
        require_fitting(command, spec.env)
        if self._has_shell:
            started = await self._start_wrapped(command, spec)
            if started is not None:
                return started
            self._has_shell = False
        if is_text:
            raise ShellMissing
        return await self._start_direct(command, spec)

    async def _start_wrapped(self, command: Sequence[str], spec: ProcessSpec) -> ProcessHandle | None:
        """Start through the shell; `None` when there turns out to be none."""
        marker = self._numbers.next()
        given = {name: value for name, value in spec.env.items() if name != MARKER_VARIABLE}
        env = carried(given) if self._numbered else {**carried(given), MARKER_VARIABLE: marker}
        if given:
            behind = assignments(len(given)) + _BEHIND_VARIABLES
            wrapper, arguments = _BEFORE_VARIABLES, (behind, "sh", *command)
        else:
            wrapper, arguments = _WITHOUT_VARIABLES, tuple(command)

        async def kill(leader: str = "") -> None:
            await kill_tree(self._container, exec_id, marker, leader, numbered=self._numbered, key=self._key)

        before = self._oom.count
        exec_id = await self._container.create_exec(
            [SHELL, "-c", wrapper, "sh", marker, spec.cwd or "", *arguments],
            env=env,
            without=stored_names(self._env),
            stdin=spec.open_stdin,
        )
        attachment: Attachment | None = None
        try:
            attachment = await self._container.start_exec(exec_id)
            status = await read_status(attachment.frames)
        except BaseException:
            await self._undo(attachment, kill)
            raise
        if status.leader is not None:
            leader = status.leader
            return self._handle(
                exec_id,
                attachment,
                OomSince(self._oom, before),
                kill=lambda: kill(leader),
                read_already=status.behind,
            )
        attachment.stream.close()  # the engine tells no end while output of it is unread
        try:
            begun = await self._confirm_not_started(exec_id, by_wrapper=status.text in _WRAPPER_WORDS)
        except BaseException:
            await self._undo(attachment, kill)
            raise
        if begun:
            await self._undo(attachment, kill)
            raise ConnectError(
                "another process of the sandbox has interfered with the start of an execution, "
                "which was ended",
                hint="end what runs in the background of this sandbox, or create a new one",
            )
        return await self._not_started(status.text, command, spec)

    async def _not_started(
        self, word: str, command: Sequence[str], spec: ProcessSpec
    ) -> ProcessHandle | None:
        """What it means that the wrapper did not become the command."""
        match word:
            case "missing":
                return FinishedProcess(127, f"{command[0]}: not found\n", missing=True)
            case "unusable":
                return FinishedProcess(126, f"{command[0]}: cannot be executed\n", missing=False)
            case "unnumbered":
                self._numbered = False  # this shell cannot set the limit, so a variable must do
                return await self._start_wrapped(command, spec)
            case "nowhere":
                raise PathNotFound(f"the working folder {spec.cwd} does not exist")
            case "refused":
                raise _cannot_enter(spec.cwd)
            case text:
                return await self._refused(text, SHELL)

    async def _confirm_not_started(self, exec_id: str, *, by_wrapper: bool) -> bool:
        """Whether, by the engine's word, something has begun although its first line says otherwise.

        The line comes from inside the sandbox, where any process of the same user can write it.
        """
        for _ in range(_CONFIRM_TRIES):
            state = await self._container.inspect_exec(exec_id)
            if not state.running and state.code is not None:
                return state.code not in ((_NOT_STARTED_CODE,) if by_wrapper else _NOT_BEGUN)
            await anyio.sleep(_BEGIN_PAUSE)
        return True

    async def _start_direct(self, command: Sequence[str], spec: ProcessSpec) -> ProcessHandle:
        before = self._oom.count
        exec_id = await self._container.create_exec(
            command,
            env=spec.env,
            without=stored_names(self._env),
            cwd=spec.cwd,
            stdin=spec.open_stdin,
        )
        attachment: Attachment | None = None
        try:
            attachment = await self._container.start_exec(exec_id)
            state = await self._until_begun(exec_id)
            first = None if state.running else await attachment.frames.receive()
        except BaseException:
            await self._undo(attachment, self._destroy)
            raise
        if first is not None and first.data.startswith(ENGINE_TEXT) and state.code in _NOT_BEGUN:
            attachment.stream.close()
            return await self._refused_directly(first.data.decode("utf-8", "replace"), command[0], spec.cwd)
        return self._handle(
            exec_id,
            attachment,
            OomSince(self._oom, before),
            kill=self._destroy,
            read_already=() if first is None else (first,),
        )

    def _handle(
        self,
        exec_id: str,
        attachment: Attachment,
        oom: OomSince,
        *,
        kill: Callable[[], Awaitable[None]],
        read_already: Sequence[OutputChunk],
    ) -> DockerProcess:
        self._open.add(attachment.stream)
        return DockerProcess(
            self._container,
            exec_id,
            attachment,
            oom,
            kill=kill,
            on_close=lambda: self._open.discard(attachment.stream),
            read_already=read_already,
        )

    async def _until_begun(self, exec_id: str) -> ExecState:
        """Without a shell's word, the engine is asked until it has started the program, or failed to."""
        while True:
            state = await self._container.inspect_exec(exec_id)
            if state.begun or state.code is not None:
                return state
            await anyio.sleep(_BEGIN_PAUSE)

    async def _undo(self, attachment: Attachment | None, kill: Callable[[], Awaitable[None]]) -> None:
        """End what was begun by mistake or was interrupted; failing that, end the sandbox."""
        if attachment is not None:
            attachment.stream.close()

        ended = False

        async def undo() -> None:
            nonlocal ended
            for end in (kill, self._destroy):
                with anyio.move_on_after(_UNDO_SECONDS), contextlib.suppress(Exception):
                    await end()
                    ended = True
                    return

        try:
            await uninterrupted(undo)
        finally:
            if not ended:
                warn_orphaned(self._container.id, "docker", "an interrupted start could not be undone")

    async def _refused_directly(self, text: str, program: str, cwd: str | None) -> ProcessHandle:
        """Without a shell, the engine's words are the only ones there are; it writes them to stdout."""
        lowered = text.lower()
        if cwd is not None and ("chdir to cwd" in lowered or "mkdir" in lowered) and cwd in text:
            if "not a directory" in lowered:
                raise _cannot_enter(cwd)
            raise PathNotFound(f"the working folder {cwd} does not exist")
        if "permission denied" in lowered or "exec format error" in lowered:
            return FinishedProcess(126, f"{program}: cannot be executed: {text.strip()}\n", missing=False)
        if "not found" in lowered or "no such file" in lowered:
            return FinishedProcess(127, f"{program}: not found\n", missing=True)
        refused = await self._refused(text, program)
        assert refused is not None
        return refused

    async def _refused(self, text: str, program: str) -> ProcessHandle | None:
        """What it means that an execution did not even begin; `None` when `program` is not there."""
        lowered = text.lower()
        if f'"{program}"' in text and any(words in lowered for words in _MISSING_PROGRAM):
            return None
        if "argument list too long" in lowered:
            raise ConfigurationError(
                "the arguments and variables together are more than Linux passes to a program (about 2 MiB)",
                hint="write what is large to a file with files.write(), or pass it as stdin",
            )
        if "resource temporarily unavailable" in lowered:
            raise ResourceLimitExceeded(
                f"the sandbox's limit of {self._pids_limit} processes is reached, so none can be started",
                hint="end processes that run in the background, or raise DockerConfig(pids_limit=…)",
            )
        if not await self._container.running():
            raise SandboxGone("the container ended while an execution was being started")
        raise ConnectError(
            f"the engine could not start an execution: {text.strip()[:500] or 'no reason given'}"
        )


def _cannot_enter(cwd: str | None) -> FileSystemError:
    return FileSystemError(
        f"the working folder {cwd} cannot be entered",
        hint="give a folder that the sandbox's user may enter, such as /work",
    )
