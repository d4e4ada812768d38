"""A tool as every framework has it: what the model is told of it, what it may send, and what that does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sandboxio.backends import install_command
from sandboxio.errors import ConfigurationError
from sandboxio.integrations.answers import Answers
from sandboxio.integrations.calls import SandboxCalls, SandboxSource
from sandboxio.models import shown

if TYPE_CHECKING:
    from sandboxio import ExecResult

__all__ = ["SandboxTool", "code_tool", "command_tool", "missing_extra"]

_CODE: Final = (
    "Run a Python program in an isolated sandbox and return its exit code and what it printed. "
    "Every call starts a new interpreter: import what you need, and print what you want to see. "
)
_COMMAND: Final = (
    "Run a shell command line in an isolated sandbox and return its exit code and what it wrote. "
    "Every call starts a new shell, and nothing can be typed while it runs. "
)
_SHARED: Final = "Files stay from one call to the next. The network may be denied."
_FRESH: Final = "Nothing stays from one call to the next, files included. The network may be denied."


@dataclass(frozen=True, slots=True)
class SandboxTool:
    """A tool whose only argument is a text. A framework's module makes the framework's object of it.

    Attributes:
        name: What the model calls it.
        description: What the model is told about it.
        argument: The name of the argument.
        meaning: What the model is told about the argument.
        run: Runs the text in the sandbox. Errors are those of the sandbox and of its creation.
        answers: Renders what came of it.

    Raises:
        ConfigurationError: No model can call it by this name.

    Example: `code_tool(sb, "run_code", timeout=60, max_chars=16_000)`
    """

    name: str
    description: str
    argument: str
    meaning: str
    run: Callable[[str], Awaitable[ExecResult]]
    answers: Answers

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def malformed(self) -> str:
        """The answer to arguments that are anything but the one text."""
        return f'the arguments are malformed: give {{"{self.argument}": "…"}} and nothing else'


def code_tool(source: SandboxSource, name: str, *, timeout: float, max_chars: int) -> SandboxTool:
    """The tool that runs Python. Arguments are those of `SandboxCalls` and `Answers`.

    Raises:
        ConfigurationError: An argument means nothing.
    """
    calls = SandboxCalls(source, timeout)
    description = _CODE + (_SHARED if calls.shared else _FRESH)
    answers = Answers(max_chars)
    return SandboxTool(name, description, "code", "The program's source text", calls.run_code, answers)


def command_tool(source: SandboxSource, name: str, *, timeout: float, max_chars: int) -> SandboxTool:
    """The tool that runs a line of shell. Arguments and errors are those of `code_tool`."""
    calls = SandboxCalls(source, timeout)
    description = _COMMAND + (_SHARED if calls.shared else _FRESH)
    answers = Answers(max_chars)
    return SandboxTool(name, description, "command", "The command line", calls.run_command, answers)


def missing_extra(distribution: str, extra: str) -> ConfigurationError:
    """The error about a framework that is not there.

    Example: `raise missing_extra("langchain-core", "langgraph") from exc`
    """
    return ConfigurationError(
        f"these tools need {distribution}, which is not installed or cannot be imported",
        hint=install_command(extra),
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or name.split() != [name]:
        raise ConfigurationError(
            f"the tool's name is {shown(name)}, which no model can call",
            hint="give a name of letters, digits and underscores, such as run_code",
        )
