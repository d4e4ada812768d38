"""The driver of the fake: the kit's ports over a virtual sandbox."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import anyio
import anyio.lowlevel

from sandboxio.adapter.driver import CodeSpec, ProcessHandle, ProcessSpec
from sandboxio.adapter.output import context_lost
from sandboxio.errors import CapabilityNotSupported, PathNotFound, SandboxError
from sandboxio.models import Capability, Resources
from sandboxio.testing.fake.execution import FakeExecution
from sandboxio.testing.fake.file_port import FakeFilePort
from sandboxio.testing.fake.machine.calls import Body
from sandboxio.testing.fake.machine.process import Execution, Process
from sandboxio.testing.fake.provider import Provider, UnreachableError, translate
from sandboxio.testing.fake.python.interpreter import run_python
from sandboxio.testing.fake.sandbox import HOME, CodeContext, VirtualSandbox
from sandboxio.testing.fake.scripted import FakeCall, Operation
from sandboxio.testing.fake.shell.interpreter import run_text
from sandboxio.testing.fake.shell.launch import run_command
from sandboxio.testing.fake.shell.program import Program

__all__ = ["FakeCodePort", "FakeDriver", "FakeProcessPort"]

_LANGUAGES: Final[Mapping[str, Callable[[str], Program]]] = MappingProxyType(
    {"python": run_python, "sh": run_text, "bash": run_text}
)


class FakeDriver:
    """One virtual sandbox. See `sandboxio.adapter.driver.Driver`."""

    def __init__(self, provider: Provider, sandbox: VirtualSandbox, capabilities: Capability) -> None:
        self._provider = provider
        self._sandbox = sandbox
        runs = Capability.RUN_COMMAND in capabilities
        self.processes = FakeProcessPort(provider, sandbox) if runs else None
        stateful = Capability.STATEFUL_CODE in capabilities
        self.code = FakeCodePort(provider, sandbox, stateful) if Capability.RUN_CODE in capabilities else None
        self.files = FakeFilePort(provider, sandbox) if Capability.FILESYSTEM in capabilities else None

    @property
    def home(self) -> str:
        """The working folder."""
        return HOME

    @property
    def template(self) -> str:
        """The template's name."""
        return self._sandbox.template

    @property
    def limits(self) -> Resources:
        """The caps in force."""
        return self._sandbox.limits

    @property
    def native(self) -> VirtualSandbox:
        """The virtual sandbox."""
        return self._sandbox

    async def alive(self) -> bool:
        """Whether it runs."""
        await anyio.lowlevel.checkpoint()
        self._provider.require_reachable()
        return not self._sandbox.ended

    async def destroy(self) -> None:
        """End it."""
        await anyio.lowlevel.checkpoint()
        self._record("kill")
        self._provider.require_reachable()
        if self._sandbox.id in self._provider.unkillable:
            raise UnreachableError("the fake provider refuses to end this sandbox")
        self._provider.end(self._sandbox)

    async def detach(self) -> None:
        """Note that nobody owns it any more."""
        await anyio.lowlevel.checkpoint()
        self._record("detach")
        self._provider.require_running(self._sandbox)

    async def aclose(self) -> None:
        """Nothing local is held."""

    def translate(self, exc: Exception) -> SandboxError | None:
        """What an exception of the fake means."""
        return translate(exc)

    def _record(self, operation: Operation) -> None:
        self._provider.calls.append(FakeCall(operation, self._sandbox.id, self._sandbox.policy))


class FakeProcessPort:
    """Commands, scripted or run by the virtual shell."""

    shell = "/bin/sh"

    def __init__(self, provider: Provider, sandbox: VirtualSandbox) -> None:
        self._provider = provider
        self._sandbox = sandbox

    async def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a command."""
        await anyio.lowlevel.checkpoint()
        sandbox = self._sandbox
        call = FakeCall(
            "run", sandbox.id, sandbox.policy, command=spec.command, cwd=spec.cwd, env=dict(spec.env)
        )
        self._provider.calls.append(call)
        self._provider.require_running(sandbox)
        scripted = self._provider.scripts.answer(call)
        if scripted is not None:
            return scripted
        folder = _folder(sandbox, spec.cwd)
        if isinstance(spec.command, str):
            argv, program = ["sh", "-c", spec.command], run_text(spec.command, "sh")
        else:
            argv, program = list(spec.command), run_command
        variables = {**sandbox.variables, **spec.env, "PWD": folder}
        return FakeExecution(
            self._provider,
            sandbox,
            program,
            argv,
            variables,
            folder,
            spec.timeout,
            open_stdin=spec.open_stdin,
        )


class FakeCodePort:
    """Code, scripted or walked by the very small Python."""

    def __init__(self, provider: Provider, sandbox: VirtualSandbox, stateful: bool) -> None:
        self._provider = provider
        self._sandbox = sandbox
        self.stateful = stateful

    def runs(self, language: str) -> bool:
        """All of them, so that any language can be scripted."""
        return True

    async def start(self, spec: CodeSpec) -> ProcessHandle:
        """Start a cell; one at a time in each context."""
        await anyio.lowlevel.checkpoint()
        sandbox = self._sandbox
        call = FakeCall(
            "run_code",
            sandbox.id,
            sandbox.policy,
            code=spec.code,
            language=spec.language,
            context_id=spec.context_id,
            env=dict(spec.env),
        )
        self._provider.calls.append(call)
        self._provider.require_running(sandbox)
        scripted = self._provider.scripts.answer(call)
        if scripted is not None:
            return scripted
        if spec.language not in _LANGUAGES:
            raise CapabilityNotSupported(
                f"the fake has no interpreter for {spec.language[:40]}",
                hint="script it with fake.on_run_code(…), or use python or sh",
            )
        if spec.context_id is None:
            return self._execution(spec, _LANGUAGES[spec.language](spec.code), lambda execution: None)
        context = sandbox.contexts.setdefault((spec.language, spec.context_id), CodeContext())
        while context.busy:
            await sandbox.kernel.changed()
        program = _in_context(spec, context)
        context.busy = True
        return self._execution(spec, program, lambda execution: _leave(context, execution))

    def _execution(
        self, spec: CodeSpec, program: Program, ended: Callable[[Execution], None]
    ) -> FakeExecution:
        sandbox = self._sandbox
        variables = {**sandbox.variables, **spec.env, "PWD": HOME}
        argv = ["python3" if spec.language == "python" else spec.language]
        return FakeExecution(
            self._provider, sandbox, program, argv, variables, HOME, spec.timeout, ended=ended
        )


def _in_context(spec: CodeSpec, context: CodeContext) -> Program:
    if spec.language != "python":
        raise CapabilityNotSupported(
            f"the fake keeps no context for {spec.language[:40]}", hint="leave context_id out"
        )
    inner = run_python(spec.code, context.variables)
    if not context.lost:
        return inner

    def program(process: Process) -> Body:
        yield from process.write(2, context_lost(spec.context_id or "").data)
        return (yield from inner(process))

    context.lost = False
    return program


def _leave(context: CodeContext, execution: Execution) -> None:
    """Free a context; a cell that was stopped by force has cost it its state."""
    context.busy = False
    if execution.killed:
        context.variables.clear()
        context.lost = True


def _folder(sandbox: VirtualSandbox, cwd: str | None) -> str:
    if cwd is None:
        return HOME
    folder = posixpath.normpath(cwd)
    try:
        sandbox.tree.folder(folder)
    except OSError as exc:
        raise PathNotFound(
            f"the working folder {folder[:200]!r} does not exist", hint="make it with files.mkdir() first"
        ) from exc
    return folder
