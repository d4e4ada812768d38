"""Tools for agents of the OpenAI Agents SDK that run in a sandbox. The extra is `openai-agents`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sandboxio.errors import SandboxError
from sandboxio.integrations.answers import MAX_CHARS, Answers
from sandboxio.integrations.calls import TIMEOUT_SECONDS, SandboxCalls, SandboxSource, missing_extra

if TYPE_CHECKING:
    from agents import FunctionTool

    from sandboxio import ExecResult

__all__ = ["make_code_tool", "make_command_tool"]


def make_code_tool(
    sandbox: SandboxSource,
    *,
    name: str = "run_code",
    timeout: float = TIMEOUT_SECONDS,
    max_chars: int = MAX_CHARS,
) -> FunctionTool:
    """A tool that runs Python. An error of this library becomes text with its code and the fix.

    Args:
        sandbox: A sandbox that all calls share and you end, or a function that makes one for each
            call, such as `sandboxio.create`; that one is ended after the call.
        name: What the model calls it.
        timeout: Seconds that one call may take.
        max_chars: How much of each of stdout, stderr and results the model is shown.

    Raises:
        ConfigurationError: `openai-agents` is not installed, or an argument means nothing.

    Example:
        async with sandboxio.create() as sb:
            agent = Agent("analyst", tools=[make_code_tool(sb)])
            print((await Runner.run(agent, "What is 2 ** 100?")).final_output)
    """
    calls, answers = SandboxCalls(sandbox, timeout), Answers(max_chars)
    return _tool(answers, calls.run_code, "code", name, calls.code_description)


def make_command_tool(
    sandbox: SandboxSource,
    *,
    name: str = "run_command",
    timeout: float = TIMEOUT_SECONDS,
    max_chars: int = MAX_CHARS,
) -> FunctionTool:
    """A tool that runs a line of shell. Arguments and errors are those of `make_code_tool`.

    Example: `Agent("operator", tools=[make_command_tool(sb)])`
    """
    calls, answers = SandboxCalls(sandbox, timeout), Answers(max_chars)
    return _tool(answers, calls.run_command, "command", name, calls.command_description)


def _tool(
    answers: Answers,
    run: Callable[[str], Awaitable[ExecResult]],
    argument: str,
    name: str,
    description: str,
) -> FunctionTool:
    try:
        from agents import FunctionTool
    except ImportError as exc:
        raise missing_extra("openai-agents", "openai-agents") from exc

    async def invoke(_context: Any, arguments: str) -> str:
        try:
            text = json.loads(arguments)[argument]
        except (ValueError, TypeError, KeyError):
            return f'the arguments are malformed: give {{"{argument}": "…"}}'
        try:
            return answers.result(await run(text))
        except SandboxError as exc:
            return answers.error(exc)

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return FunctionTool(name, description, schema, invoke)
