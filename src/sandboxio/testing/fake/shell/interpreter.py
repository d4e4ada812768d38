"""The shell of a virtual sandbox: lists, pipelines, redirections, jobs and builtins."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Body, Call, Exited, Wait
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import (
    PIPE_BYTES,
    Channel,
    NullDevice,
    Pipe,
    PipeReader,
    PipeWriter,
)
from sandboxio.testing.fake.shell.expansion import Expander
from sandboxio.testing.fake.shell.parser import parse_script
from sandboxio.testing.fake.shell.program import Program, complaint, error_text, open_to_read, open_to_write
from sandboxio.testing.fake.shell.programs import PROGRAMS
from sandboxio.testing.fake.shell.syntax import (
    AndOr,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    Simple,
)

__all__ = ["run_text"]

Status = Generator[Call, Any, int]


def run_text(text: str, *arguments: str) -> Program:
    """The program that a line of text is to the shell.

    Raises:
        NotSimulatedError: It uses a part of the shell that the fake does not know.
    """
    try:
        script = parse_script(text)
    except ShellSyntaxError as exc:
        return complaint(f"sh: {exc}", 2)
    return _run_script(script, arguments)


def _run_script(script: Script, arguments: Sequence[str] = (), *, parent: _Shell | None = None) -> Program:
    def program(process: Process) -> Body:
        shell = _Shell(process, arguments, parent)
        yield from shell.run(script)
        return shell.status

    return program


class _Shell(Expander):
    """One shell, or subshell of `parent`, in one process."""

    def __init__(self, process: Process, arguments: Sequence[str], parent: _Shell | None) -> None:
        super().__init__(process, arguments, parent)
        self._jobs: list[Process] = []

    def run(self, script: Script) -> Generator[Call, Any, None]:
        """Run a list of jobs one after the other."""
        for job in script.jobs:
            if job.background:
                yield from self._start_job(job.and_or)
            else:
                yield from self.and_or(job.and_or)

    def _start_job(self, and_or: AndOr) -> Generator[Call, Any, None]:
        channels = {**self._process.channels, 0: NullDevice()}
        ((_, pipeline), *others) = and_or.pipelines
        if not others and len(pipeline.commands) == 1 and not pipeline.negated:
            child = yield from self._spawn(pipeline.commands[0], channels)
        else:
            child = self._spawn_program("sh", self._subshell(lambda shell: shell.and_or(and_or)), channels)
        self._jobs.append(child)
        self.last_job = str(child.pid)
        self.status = 0

    def and_or(self, and_or: AndOr) -> Generator[Call, Any, None]:
        """Run pipelines as far as their outcomes say."""
        for operator, pipeline in and_or.pipelines:
            if (operator == "&&" and self.status) or (operator == "||" and not self.status):
                continue
            yield from self._pipeline(pipeline)

    def _pipeline(self, pipeline: Pipeline) -> Generator[Call, Any, None]:
        if len(pipeline.commands) == 1:
            yield from self.command(pipeline.commands[0])
        else:
            children: list[Process] = []
            held: list[
                PipeReader
            ] = []  # a reader is held until its stage holds it, lest the pipe look broken
            source = self._process.channels[0]
            for command in pipeline.commands[:-1]:
                pipe = Pipe()
                held.append(PipeReader(pipe))
                held[-1].open()
                channels = {**self._process.channels, 0: source, 1: PipeWriter(pipe)}
                children.append((yield from self._spawn(command, channels)))
                source = held[-1]
            channels = {**self._process.channels, 0: source}
            children.append((yield from self._spawn(pipeline.commands[-1], channels)))
            for reader in held:
                reader.close()
            self.status = yield Wait(children)
        if pipeline.negated:
            self.status = int(not self.status)

    def _spawn(self, command: Command, channels: Mapping[int, Channel]) -> Generator[Call, Any, Process]:
        """Start a command in a process of its own: a program directly, all else in a subshell."""
        if isinstance(command, Simple):
            argv = yield from self._expand_all(command.words)
            if argv and argv[0] not in _BUILTINS:
                with suppress(OSError):  # a subshell meets the same refusal, and reports it
                    channels = yield from self._redirected(command.redirects, channels)
                    variables = yield from self._assigned(command)
                    return self._process.spawn(argv, channels=channels, variables=variables)
        return self._spawn_program("sh", self._subshell(lambda shell: shell.command(command)), channels)

    def _spawn_program(self, name: str, program: Program, channels: Mapping[int, Channel]) -> Process:
        return self._process.spawn([name], program, channels=channels)

    def _subshell(self, action: Callable[[_Shell], Generator[Call, Any, None]]) -> Program:
        def program(process: Process) -> Body:
            shell = _Shell(process, (), self)
            yield from action(shell)
            return shell.status

        return program

    def command(self, command: Command) -> Generator[Call, Any, None]:
        """Run a command, with its redirections, in this shell."""
        before = self._process.channels
        try:
            self._process.channels = yield from self._redirected(command.redirects, before)
            if isinstance(command, Simple):
                yield from self._simple(command)
            elif isinstance(command, Group):
                yield from self._group(command)
            elif isinstance(command, If):
                yield from self._if(command)
            else:
                yield from self._for(command)
        except BrokenPipeError:
            raise
        except OSError as exc:
            self._process.channels = before
            yield from self._process.write(2, error_text("sh", exc))
            self.status = 1
        finally:
            self._process.channels = before

    def _group(self, group: Group) -> Generator[Call, Any, None]:
        if not group.subshell:
            yield from self.run(group.body)
            return
        child = self._spawn_program(
            "sh", self._subshell(lambda shell: shell.run(group.body)), self._process.channels
        )
        self.status = yield Wait([child])

    def _if(self, command: If) -> Generator[Call, Any, None]:
        for condition, body in command.branches:
            yield from self.run(condition)
            if not self.status:
                yield from self.run(body)
                return
        self.status = 0
        if command.otherwise is not None:
            yield from self.run(command.otherwise)

    def _for(self, command: For) -> Generator[Call, Any, None]:
        self.status = 0
        for value in (yield from self._expand_all(command.words)):
            self._set(command.name, value)
            yield from self.run(command.body)

    def _simple(self, command: Simple) -> Generator[Call, Any, None]:
        argv = yield from self._expand_all(command.words)
        if not argv:
            for name, word in command.assignments:
                self._set(name, (yield from self._expand_one(word)))
            if not any(part.kind == "output" for _, word in command.assignments for part in word.parts):
                self.status = 0
            return
        builtin = _BUILTINS.get(argv[0])
        if builtin is not None:
            self.status = yield from builtin(self, argv)
            return
        variables = yield from self._assigned(command)
        child = self._process.spawn(argv, variables=variables)
        self.status = yield Wait([child])

    def _assigned(self, command: Simple) -> Generator[Call, Any, dict[str, str]]:
        variables = dict(self._process.variables)
        for name, word in command.assignments:
            variables[name] = yield from self._expand_one(word)
        return variables

    def _redirected(
        self, redirects: Sequence[Redirect], before: Mapping[int, Channel]
    ) -> Generator[Call, Any, dict[int, Channel]]:
        channels = dict(before)
        for redirect in redirects:
            name = yield from self._expand_one(redirect.target)
            if redirect.operator.endswith("&"):
                if name == "-":
                    channels[redirect.descriptor] = NullDevice()
                elif not name.isdecimal() or int(name) not in channels:
                    raise OSError(f"{name}: bad file descriptor")
                else:
                    channels[redirect.descriptor] = channels[int(name)]
            elif redirect.operator == "<":
                channels[redirect.descriptor] = open_to_read(self._process, name)
            else:
                channels[redirect.descriptor] = open_to_write(
                    self._process, name, append=redirect.operator == ">>"
                )
        return channels

    def _output_of(self, script: Script) -> Generator[Call, Any, str]:
        """Run a script in a subshell, and gather what it writes."""
        pipe = Pipe()
        reader = PipeReader(pipe)
        reader.open()
        channels = {**self._process.channels, 1: PipeWriter(pipe)}
        child = self._spawn_program("sh", self._subshell(lambda shell: shell.run(script)), channels)
        self._process.channels = {**self._process.channels, _SUBSTITUTION: reader}
        output = b""
        while data := (yield from self._process.read(_SUBSTITUTION, PIPE_BYTES)):
            output += data
        del self._process.channels[_SUBSTITUTION]
        self.status = yield Wait([child])
        return output.decode("utf-8", "surrogateescape").rstrip("\n")

    def wait(self, argv: Sequence[str]) -> Status:
        """`wait`: for all jobs, or for those that are named."""
        wanted = {int(word) for word in argv[1:] if word.isdecimal()}
        jobs = [job for job in self._jobs if not wanted or job.pid in wanted]
        code = yield Wait(jobs)
        return code if wanted else 0

    def change_folder(self, argv: Sequence[str]) -> Status:
        """`cd`."""
        name = argv[1] if len(argv) > 1 else self._get("HOME")
        target = posixpath.normpath(self._process.path(name))
        try:
            self._process.kernel.tree.folder(target)
        except OSError as exc:
            exc.filename = name
            yield from self._process.write(2, error_text("cd", exc))
            return 1
        self._process.folder = target
        return 0

    def export(self, argv: Sequence[str]) -> Status:
        """`export`."""
        yield from ()
        for word in argv[1:]:
            name, equals, value = word.partition("=")
            self._process.variables[name] = value if equals else self._get(name)
            self.locals.pop(name, None)
        return 0

    def unset(self, argv: Sequence[str]) -> Status:
        """`unset`."""
        yield from ()
        for name in argv[1:]:
            self.locals.pop(name, None)
            self._process.variables.pop(name, None)
        return 0

    def leave(self, argv: Sequence[str]) -> Status:
        """`exit`."""
        yield from ()
        raise Exited(int(argv[1]) & 0xFF if len(argv) > 1 else self.status)

    def signal(self, argv: Sequence[str]) -> Status:
        """`kill`."""
        self._process.argv, before = list(argv), self._process.argv
        try:
            return (yield from PROGRAMS["kill"](self._process))
        finally:
            self._process.argv = before

    def nothing(self, argv: Sequence[str]) -> Status:
        """`:`."""
        yield from ()
        return 0


_SUBSTITUTION: Final = 63

_BUILTINS: Final[Mapping[str, Callable[[_Shell, Sequence[str]], Status]]] = MappingProxyType(
    {
        ":": _Shell.nothing,
        "cd": _Shell.change_folder,
        "exit": _Shell.leave,
        "export": _Shell.export,
        "kill": _Shell.signal,
        "unset": _Shell.unset,
        "wait": _Shell.wait,
    }
)
