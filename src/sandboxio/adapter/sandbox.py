"""The sandbox that every adapter hands out: the one path that each operation takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Self

import anyio

from sandboxio.adapter.driver import CodeSpec, Execution, ProcessSpec, ShellMissing
from sandboxio.adapter.files import Files
from sandboxio.adapter.guard import Guard
from sandboxio.adapter.interpreters import INTERPRETERS
from sandboxio.adapter.operation import Recorder
from sandboxio.adapter.process import Process
from sandboxio.adapter.validation import (
    absolute_path,
    checked_code,
    checked_command,
    checked_environment,
    checked_input,
    checked_language,
    checked_timeout,
)
from sandboxio.errors import AuditSinkError, CapabilityNotSupported, ConnectError, SandboxError
from sandboxio.models import PIPE, Capability, ExecResult, IsolationTier, Pipe
from sandboxio.release import grace_seconds, uninterrupted, warn_orphaned

__all__ = ["Sandbox"]


class Sandbox:
    """An `AsyncSandbox` over a driver. Adapters get it from `provision` and `attach`."""

    def __init__(
        self,
        *,
        guard: Guard,
        recorder: Recorder,
        secrets: Mapping[str, str],
        owned: bool,
    ) -> None:
        self._guard = guard
        self._recorder = recorder
        self._secrets = dict(secrets)
        self._owned = owned
        self._killed = False
        self._files = Files(guard, recorder)

    def __repr__(self) -> str:
        identity = self._guard.identity
        words = [
            f"{identity.backend}:{identity.id[:12]}",
            identity.isolation.value,
            "running" if self._guard.running else "ended",
            "|".join(flag.name or "" for flag in self._guard.capabilities),
        ]
        if identity.loosened:
            words.append(f"loosened: {' '.join(identity.loosened)}")
        return f"<Sandbox {' '.join(words)}>"

    @property
    def id(self) -> str:
        """The provider's own id."""
        return self._guard.identity.id

    @property
    def backend(self) -> str:
        """The name of the backend, for display."""
        return self._guard.identity.backend

    @property
    def capabilities(self) -> Capability:
        """What this sandbox can do."""
        return self._guard.capabilities

    @property
    def isolation(self) -> IsolationTier:
        """What was verified about its isolation."""
        return self._guard.identity.isolation

    @property
    def metadata(self) -> Mapping[str, str]:
        """The labels given at creation."""
        return MappingProxyType(dict(self._guard.identity.metadata))

    @property
    def files(self) -> Files:
        """The file system."""
        self._guard.require(Capability.FILESYSTEM)
        return self._files

    @property
    def native(self) -> Any:
        """The provider SDK's own object. Outside this library's version promise."""
        return self._guard.driver.native

    async def run(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | None = None,
    ) -> ExecResult:
        """Run a command to its end and return what it wrote."""
        self._guard.require(Capability.RUN_COMMAND)
        async with self._command("run", cmd, timeout, env, cwd, stdin, watched=False) as process:
            return await process.collect()

    def stream(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | str | Pipe | None = None,
    ) -> Process:
        """Prepare a command whose output is read while it runs."""
        self._guard.require(Capability.STREAMING)
        return self._command("stream", cmd, timeout, env, cwd, stdin, watched=True)

    async def run_code(
        self,
        code: str,
        *,
        language: str = "python",
        context_id: str | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a piece of code, starting clean unless `context_id` names a context."""
        self._guard.require(Capability.RUN_CODE)
        if context_id is not None:
            self._guard.require(Capability.STATEFUL_CODE)
        code, language = checked_code(code), checked_language(language)
        variables = self._variables(env)
        timeout = None if timeout is None else checked_timeout(timeout)
        port = self._guard.driver.code
        has_interpreters = self._guard.driver.processes is not None
        if port is None or (has_interpreters and not port.runs(language)):
            if context_id is not None:
                raise CapabilityNotSupported(
                    f"{self._template_name} keeps no context for {self._guard.redactor.text(repr(language))}",
                    hint="leave context_id out, or use python",
                )
            return await self._interpret(code, language, variables, timeout)

        async def start(bound: float) -> Execution:
            return await port.start(CodeSpec(code, language, context_id, variables, bound))

        operation = self._recorder.operation("run_code", argv=[language], code=code)
        operation.bytes_in = len(code.encode())
        process = Process(self._guard, operation, start, timeout=timeout, stdin=None, rich=True)
        async with process:
            return await process.collect()

    async def kill(self) -> None:
        """End the sandbox. Does nothing when it has ended."""
        if self._killed:
            return
        async with self._recorder.operation("kill"):
            await uninterrupted(self._destroy)

    async def detach(self) -> str:
        """Give up ownership: the sandbox lives on to the end of its lifetime. Returns its id."""
        async with self._recorder.operation("detach"):
            detached = False
            with anyio.move_on_after(grace_seconds()):
                async with self._guard.calls("detaching"):
                    await self._guard.driver.detach()
                    self._owned = False
                    detached = True
            if not detached:
                raise ConnectError(f"detaching the {self.backend} sandbox {self.id[:12]} took too long")
        return self.id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        failures: list[SandboxError] = []

        async def end() -> None:
            try:
                if self._owned:
                    await self.kill()
            except SandboxError as failure:
                failures.append(failure)
            await self._guard.driver.aclose()

        try:
            await uninterrupted(end)
        finally:
            for failure in failures:
                if not isinstance(failure, AuditSinkError):
                    warn_orphaned(self.id, self.backend, failure.message)
                elif exc is None:
                    raise failure
                else:
                    exc.add_note(str(failure))

    async def _destroy(self) -> None:
        try:
            with anyio.move_on_after(grace_seconds()):
                await self._guard.driver.destroy()
                self._killed = True
        except Exception as exc:
            error = exc if isinstance(exc, SandboxError) else self._guard.driver.translate(exc)
            raise self._not_ended(error.message if error else type(exc).__name__) from exc
        if not self._killed:
            raise self._not_ended("it took longer than SBX_TEARDOWN_GRACE")
        self._guard.ended = self._guard.ended or "it was killed"
        await self._guard.driver.aclose()

    def _not_ended(self, reason: str) -> ConnectError:
        return ConnectError(
            f"the {self.backend} sandbox {self.id[:12]} could not be ended: {reason}",
            hint="end it with `sandboxio reap --kill`, or wait for the end of its lifetime",
        )

    def _command(
        self,
        event: str,
        cmd: str | Sequence[str],
        timeout: float | None,
        env: Mapping[str, str] | None,
        cwd: str | None,
        stdin: bytes | str | Pipe | None,
        *,
        watched: bool,
    ) -> Process:
        command = checked_command(cmd)
        variables = self._variables(env)
        folder = None if cwd is None else absolute_path("cwd", cwd, self._guard.driver.home)
        source = stdin if stdin is None or stdin is PIPE else checked_input(stdin)
        timeout = None if timeout is None else checked_timeout(timeout)

        async def start(bound: float) -> Execution:
            spec = ProcessSpec(command, variables, folder, source is not None, bound)
            return await self._start(spec)

        argv = (command,) if isinstance(command, str) else command
        operation = self._recorder.operation(event, argv=argv)
        return Process(self._guard, operation, start, timeout=timeout, stdin=source, watched=watched)

    async def _start(self, spec: ProcessSpec) -> Execution:
        port = self._guard.driver.processes
        assert port is not None, "RUN_COMMAND was declared without a process port"
        try:
            return await port.start(spec)
        except ShellMissing as exc:
            raise CapabilityNotSupported(
                f"this sandbox has no shell ({port.shell}), so a command cannot be given as text",
                hint='give a list, such as run(["prog", "arg"]), or use an image with a shell',
            ) from exc

    async def _interpret(
        self, code: str, language: str, variables: dict[str, str], timeout: float | None
    ) -> ExecResult:
        argv = INTERPRETERS.get(language)
        if argv is None:
            raise CapabilityNotSupported(
                f"the language {self._guard.redactor.text(repr(language))} is not known here",
                hint=f"use one of {', '.join(sorted(INTERPRETERS))}, or run its interpreter with run()",
            )

        async def start(bound: float) -> Execution:
            return await self._start(ProcessSpec(argv, variables, None, True, bound))

        operation = self._recorder.operation("run_code", argv=[language], code=code)
        source = code.encode()
        async with Process(self._guard, operation, start, timeout=timeout, stdin=source) as process:
            result = await process.collect()
            if process.program_missing:
                raise CapabilityNotSupported(
                    f"{self._template_name} has no {argv[0]}, so it cannot run {language}",
                    hint=f"use an image that contains {argv[0]}",
                )
            return result

    @property
    def _template_name(self) -> str:
        return f"the template {self._guard.driver.template!r} of the backend {self.backend}"

    def _variables(self, env: Mapping[str, str] | None) -> dict[str, str]:
        return {**self._secrets, **checked_environment("env", env)}
