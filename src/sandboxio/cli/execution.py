"""What `sandboxio run` does once its arguments are understood: create, copy in, run, copy out, end."""

from __future__ import annotations

import argparse
import posixpath
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import anyio

from sandboxio.cli.exit_codes import OK, UNABLE
from sandboxio.cli.hints import in_options
from sandboxio.cli.output import Output
from sandboxio.cli.programs import read_program
from sandboxio.cli.progress import waiting
from sandboxio.cli.streams import Captured, Live, feed, piped_input
from sandboxio.cli.transfers import require_local_sides

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox, PendingSandbox, Process
    from sandboxio.cli.transfers import Transfer

__all__ = ["allowed_seconds", "execute"]

_TRANSFER_SECONDS: Final = 60.0
"""What the sandbox lives longer than its command may take, for copying in and out."""

_DEFAULT_SECONDS: Final = 300.0
"""What a command may take where neither the command line nor the target says it."""

_DELIVERY_SECONDS: Final = 1.0
"""How much later than the command's own end its output may still be taken."""

_FORMS: Final = (
    'write `sandboxio run -- COMMAND ARG…`, `sandboxio run -c "TEXT"` or `sandboxio run --python FILE`'
)
_PIPED_PROGRAM: Final = "main.py"
_UNBUFFERED: Final = {"PYTHONUNBUFFERED": "1"}


async def execute(arguments: argparse.Namespace, secrets: Mapping[str, str], output: Output) -> int:
    """Run what the arguments ask for, and return its exit code.

    Raises:
        SandboxError: It could not be run to its end.
    """
    output.keep_out(secrets.values())
    require_local_sides(arguments.upload, arguments.download)
    job = await _Job.of(arguments)
    sink = Captured() if output.as_json else Live()
    output.document.update(backend=None, sandbox_id=None, isolation=None, exit_code=None, duration_ms=None)
    async with AsyncExitStack() as stack:
        with waiting("creating the sandbox"):
            sandbox = await stack.enter_async_context(_pending(arguments, secrets))
        output.document.update(
            backend=sandbox.backend, sandbox_id=sandbox.id, isolation=sandbox.isolation.value
        )
        await job.copy_in(sandbox, arguments.upload)
        started = time.perf_counter()
        try:
            code = await job.run(sandbox, sink, arguments)
            output.document["exit_code"] = code
        finally:
            output.document["duration_ms"] = round((time.perf_counter() - started) * 1000)
            sink.show_in(output)
        if not await _copy_out(sandbox, arguments.download, output) and code == OK:
            return UNABLE
    return code


def _pending(arguments: argparse.Namespace, secrets: Mapping[str, str]) -> PendingSandbox:
    import sandboxio

    limits: dict[str, Any] = {}
    if arguments.timeout is not None:
        limits["timeout"] = arguments.timeout + _TRANSFER_SECONDS
    if arguments.require_isolation is not None:
        limits["require_isolation"] = sandboxio.IsolationTier(arguments.require_isolation)
    return sandboxio.create(
        arguments.backend,
        resources=sandboxio.Resources(
            cpu=arguments.cpu, memory_mb=arguments.memory_mb, disk_mb=arguments.disk_mb
        ),
        network=sandboxio.NetworkPolicy(egress=arguments.egress or "deny", allow=tuple(arguments.allow)),
        env=dict(arguments.env),
        secrets=secrets,
        metadata=dict(arguments.label),
        **limits,
    )


class _Job:
    """One command: its words, the program that is copied in for it, and where its input comes from."""

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        program: bytes | None = None,
        path: str = "",
        source: int | None = None,
    ) -> None:
        self._command = _checked(command)
        self._program = program
        self._path = path
        self._source = source

    @classmethod
    async def of(cls, arguments: argparse.Namespace) -> _Job:
        """What the arguments ask for.

        Raises:
            ConfigurationError: They ask for nothing, for two things, or for a file that cannot be read.
        """
        from sandboxio import ConfigurationError

        words: list[str] = arguments.words
        if arguments.python is not None:
            return await cls._of_python(arguments.python, words, arguments.cwd)
        if (arguments.text is None) == (not words):
            raise ConfigurationError(
                "there is no command" if not words else "there is both a command and -c", hint=_FORMS
            )
        return cls(words or arguments.text, source=piped_input())

    @classmethod
    async def _of_python(cls, file: str, words: list[str], cwd: str | None) -> _Job:
        """A Python program goes into the folder that it runs in, where it finds what was copied in."""
        program = await read_program(file)
        name, source = (_PIPED_PROGRAM, None) if file == "-" else (Path(file).name, piped_input())
        path = posixpath.join(cwd or ".", name)
        return cls(["python3", f"./{name}", *words], program=program, path=path, source=source)

    async def copy_in(self, sandbox: AsyncSandbox, transfers: Sequence[Transfer]) -> None:
        """Copy in what the command needs."""
        for transfer in transfers:
            with waiting(f"copying {transfer.local} in"):
                await sandbox.files.upload(transfer.local, transfer.path)
        if self._program is not None:
            await sandbox.files.write(self._path, self._program)

    async def run(self, sandbox: AsyncSandbox, sink: Captured | Live, arguments: argparse.Namespace) -> int:
        """Run it, with input and output passed on, and return its exit code."""
        from sandboxio import PIPE

        process = sandbox.stream(
            self._command,
            timeout=arguments.timeout,
            env=_UNBUFFERED if self._program is not None else None,
            cwd=arguments.cwd,
            stdin=None if self._source is None else PIPE,
        )
        failures: list[Exception] = []
        async with process, anyio.create_task_group() as group:

            async def do(part: Callable[[], Awaitable[None]]) -> None:
                try:
                    await part()
                except Exception as exc:  # raised again below: a group would wrap it
                    failures.append(exc)
                    group.cancel_scope.cancel()

            if (source := self._source) is not None:
                group.start_soon(do, lambda: feed(process, source))
            await do(lambda: _pass_on(process, sink, allowed_seconds(arguments)))
            group.cancel_scope.cancel()
        if failures:
            raise failures[0]
        return (await process.wait()).exit_code


def _checked(command: str | Sequence[str]) -> str | Sequence[str]:
    """The command, if a sandbox can be given it; what is wrong is told before there is one."""
    from sandboxio import ConfigurationError

    words = [command] if isinstance(command, str) else command
    if not words[0].strip():
        raise ConfigurationError("the command is empty", hint=_FORMS)
    if words is command and words[0].startswith("-"):
        raise ConfigurationError(
            "the program's name starts with a dash, which shells take for an option",
            hint="put options of sandboxio before --, or give the program's path, such as ./-name",
        )
    if any(_is_lone_surrogate(character) for word in words for character in word):
        raise ConfigurationError(
            "the command holds bytes that are no UTF-8", hint="give them as standard input or in a file"
        )
    return command


def _is_lone_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def allowed_seconds(arguments: argparse.Namespace) -> float:
    """How long the command may take.

    Example: `allowed_seconds(arguments) == 60` for `--backend TARGET?timeout=60`
    """
    if arguments.timeout is not None:
        return float(arguments.timeout)
    named = parse_qs((arguments.backend or "").partition("?")[2]).get("timeout")
    return float(named[0]) if named else _DEFAULT_SECONDS


async def _pass_on(process: Process, sink: Captured | Live, seconds: float) -> None:
    """Hand on all output. While its reader stalls nothing asks the process, so its time is kept here.

    Raises:
        ExecutionTimeout: It was not taken in time.
    """
    from sandboxio import ExecutionTimeout

    deadline = anyio.current_time() + seconds + _DELIVERY_SECONDS
    async for chunk in process:
        with anyio.CancelScope(deadline=deadline) as scope:
            await sink.take(chunk)
        if scope.cancelled_caught:
            raise ExecutionTimeout(
                f"nobody took the output within {seconds:.3g} s, and the command was ended",
                hint="read the output as it comes, or give --timeout more seconds",
            )


async def _copy_out(sandbox: AsyncSandbox, transfers: Sequence[Transfer], output: Output) -> bool:
    """Copy out what was asked for, each whatever became of the others; says whether all came."""
    from sandboxio import SandboxError

    complete = True
    for transfer in transfers:
        try:
            with waiting(f"copying {transfer.path} out"):
                await sandbox.files.download(transfer.path, transfer.local)
        except SandboxError as exc:
            output.error(in_options(exc))
            complete = False
    return complete
