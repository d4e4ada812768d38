"""What `sandboxio run` does once its arguments are understood: create, copy in, run, copy out, end."""

from __future__ import annotations

import argparse
import posixpath
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from sandboxio.cli.exit_codes import OK, UNABLE
from sandboxio.cli.output import Output
from sandboxio.cli.progress import waiting
from sandboxio.cli.streams import Captured, Live, feed, piped_input, read_all, standard_input

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox, PendingSandbox
    from sandboxio.cli.run import Transfer

__all__ = ["execute"]

_TRANSFER_SECONDS: Final = 60.0
"""What the sandbox lives longer than its command may take, for copying in and out."""

_PIPED_PROGRAM: Final = "main.py"
_UNBUFFERED: Final = {"PYTHONUNBUFFERED": "1"}


async def execute(arguments: argparse.Namespace, secrets: Mapping[str, str], output: Output) -> int:
    """Run what the arguments ask for, and return its exit code.

    Raises:
        SandboxError: It could not be run to its end.
    """
    output.keep_out(secrets.values())
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
        self._command = command
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
                "there is no command" if not words else "there is both a command and -c",
                hint='write `sandboxio run -- COMMAND ARG…`, `sandboxio run -c "TEXT"` or '
                "`sandboxio run --python FILE`",
            )
        return cls(words or arguments.text, source=piped_input())

    @classmethod
    async def _of_python(cls, file: str, words: list[str], cwd: str | None) -> _Job:
        """A Python program goes into the folder that it runs in, where it finds what was copied in."""
        if file == "-":
            source = standard_input()
            program = b"" if source is None else await read_all(source)
            name, source = _PIPED_PROGRAM, None
        else:
            program, name, source = _read_program(Path(file)), Path(file).name, piped_input()
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
        failure: Exception | None = None
        async with process, anyio.create_task_group() as group:
            if self._source is not None:
                group.start_soon(feed, process, self._source)
            try:
                async for chunk in process:
                    await sink.take(chunk)
            except Exception as exc:  # raised again below: a group would wrap it
                failure = exc
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return (await process.wait()).exit_code


def _read_program(file: Path) -> bytes:
    from sandboxio import ConfigurationError

    try:
        return file.read_bytes()
    except OSError as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc.strerror}", hint="name a Python file, or - for standard input"
        ) from exc


async def _copy_out(sandbox: AsyncSandbox, transfers: Sequence[Transfer], output: Output) -> bool:
    """Copy out what was asked for, each whatever became of the others; says whether all came."""
    from sandboxio import SandboxError

    complete = True
    for transfer in transfers:
        try:
            with waiting(f"copying {transfer.path} out"):
                await sandbox.files.download(transfer.path, transfer.local)
        except SandboxError as exc:
            output.error(exc)
            complete = False
    return complete
