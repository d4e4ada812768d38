"""Responses that a test wrote down beforehand, and the record of what was asked."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Literal

import anyio.lowlevel

from sandboxio.adapter.driver import Exit
from sandboxio.errors import ConfigurationError
from sandboxio.models import ExecResult, OutputChunk, RichOutput, shown
from sandboxio.network import NetworkPolicy

__all__ = ["FakeCall", "Match", "Response", "ScriptedExecution", "Scripts", "check_error"]

Operation = Literal["create", "connect", "run", "run_code", "files", "detach", "kill"]


@dataclass(frozen=True, slots=True)
class FakeCall:
    """Something that was asked of the fake.

    Attributes:
        operation: What; `run` stands for streams too, and `files` for every file operation.
        sandbox_id: Of which sandbox.
        network: The policy that was in effect.
        command: The command, as it was given.
        code: The source text.
        language: Its language.
        context_id: The context it ran in.
        path: The path of a file operation.
        cwd: The folder of a command, absolute.
        env: All variables of the execution besides those given at creation, secrets included.
    """

    operation: Operation
    sandbox_id: str
    network: NetworkPolicy
    command: str | tuple[str, ...] | None = None
    code: str | None = field(default=None, repr=False)
    language: str | None = None
    context_id: str | None = None
    path: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def text(self) -> str:
        """The command as one line, or the code."""
        if self.command is None:
            return self.code or ""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)


Match = str | re.Pattern[str] | Callable[[FakeCall], bool]
Response = ExecResult | str | Callable[[FakeCall], "ExecResult | str"]


@dataclass(frozen=True, slots=True)
class _Rule:
    operation: Operation
    match: Match
    returns: Response | None
    raises: Exception | None

    def covers(self, call: FakeCall) -> bool:
        if call.operation != self.operation:
            return False
        if isinstance(self.match, str):
            return self.match in call.text
        if isinstance(self.match, re.Pattern):
            return self.match.search(call.text) is not None
        return self.match(call)


class Scripts:
    """All responses of one fake. Of those that match, the one that was added last is given."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(
        self, operation: Operation, match: Match, returns: Response | None, raises: Exception | None
    ) -> None:
        """Add one.

        Raises:
            ConfigurationError: It has no outcome, or two, or something is of a type that it cannot be.
        """
        if (returns is None) is (raises is None):
            raise ConfigurationError(
                "a scripted response needs exactly one of returns= and raises=",
                hint='give on_run("pytest", returns="3 passed")',
            )
        _check_match(match)
        if returns is not None:
            _check_response(returns)
        if raises is not None:
            check_error(raises)
        self._rules.insert(0, _Rule(operation, match, returns, raises))

    def answer(self, call: FakeCall) -> ScriptedExecution | None:
        """The response to a call, or `None` if nothing was scripted.

        Raises:
            ConfigurationError: A scripted function gave neither a result nor text.
            Exception: The one that was scripted.
        """
        rule = next((rule for rule in self._rules if rule.covers(call)), None)
        if rule is None:
            return None
        if rule.raises is not None:
            raise rule.raises
        outcome = rule.returns(call) if callable(rule.returns) else rule.returns
        return ScriptedExecution(_result(outcome))


class ScriptedExecution:
    """An execution whose whole outcome is known beforehand."""

    def __init__(self, result: ExecResult) -> None:
        self._exit = Exit(result.exit_code, oom_killed=result.oom_killed)
        self._output: deque[OutputChunk | RichOutput] = deque()
        if result.stdout:
            self._output.append(OutputChunk("stdout", result.stdout.encode()))
        if result.stderr:
            self._output.append(OutputChunk("stderr", result.stderr.encode()))
        self._output.extend(result.results or ())

    async def receive(self) -> OutputChunk | RichOutput | None:
        """The next piece."""
        await anyio.lowlevel.checkpoint()
        return self._output.popleft() if self._output else None

    async def poll(self) -> Exit | None:
        """The end, once all output was taken."""
        return None if self._output else self._exit

    async def wait(self) -> Exit:
        """The end."""
        await anyio.lowlevel.checkpoint()
        return self._exit

    async def send(self, data: memoryview) -> int:
        """Take input, and do nothing with it."""
        await anyio.lowlevel.checkpoint()
        return len(data)

    async def send_eof(self) -> None:
        """Take the end of input."""
        await anyio.lowlevel.checkpoint()

    async def kill(self) -> None:
        """Stop giving output."""
        self._output.clear()

    async def aclose(self) -> None:
        """Nothing is held."""


def check_error(error: object) -> None:
    """Refuse what cannot be raised in place of an answer.

    Raises:
        ConfigurationError: It is no exception object.
    """
    if not isinstance(error, Exception):
        raise ConfigurationError(
            f"{shown(error)} cannot be raised in place of an answer",
            hint='give an exception object, such as sandboxio.ConnectError("the service is down")',
        )


def _check_match(match: Match) -> None:
    searched: object = match.pattern if isinstance(match, re.Pattern) else match
    if not isinstance(searched, str) and not _is_function(searched):
        raise ConfigurationError(
            f"{shown(searched)} matches no call",
            hint="give text that the call contains, a compiled pattern of text, or a function of the call",
        )


def _check_response(response: object) -> None:
    if not isinstance(response, str | ExecResult) and not _is_function(response):
        raise ConfigurationError(
            f"{shown(response)} is no answer to a call",
            hint="give standard output as text, an ExecResult, or a function of the call that gives one",
        )


def _is_function(thing: object) -> bool:
    return callable(thing) and not isinstance(thing, type) and not iscoroutinefunction(thing)


def _result(outcome: object) -> ExecResult:
    if isinstance(outcome, ExecResult):
        return outcome
    if isinstance(outcome, str):
        return ExecResult(0, outcome, "")
    raise ConfigurationError(
        f"a scripted function answered {shown(outcome)}",
        hint="let it give standard output as text, or an ExecResult",
    )
