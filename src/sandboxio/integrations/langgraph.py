"""Tools for LangGraph and LangChain agents that run in a sandbox. The extra is `langgraph`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from sandboxio import ExecResult
from sandboxio.errors import SandboxError
from sandboxio.integrations.answers import MAX_CHARS, Answers
from sandboxio.integrations.calls import TIMEOUT_SECONDS, SandboxCalls, SandboxSource, missing_extra

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = ["make_code_tool", "make_command_tool"]


def make_code_tool(
    sandbox: SandboxSource,
    *,
    name: str = "run_code",
    timeout: float = TIMEOUT_SECONDS,
    max_chars: int = MAX_CHARS,
) -> StructuredTool:
    """A tool that runs Python. It is asynchronous: run the agent by `ainvoke` or `astream`.

    Its message holds text, and the `ExecResult` as the `artifact`. An error of this library becomes
    a message with the status `error`, which tells its code and the fix.

    Args:
        sandbox: A sandbox that all calls share and you end, or a function that makes one for each
            call, such as `sandboxio.create`; that one is ended after the call.
        name: What the model calls it.
        timeout: Seconds that one call may take.
        max_chars: How much of each of stdout, stderr and results the model is shown.

    Raises:
        ConfigurationError: `langchain-core` is not installed, or an argument means nothing.

    Example:
        async with sandboxio.create() as sb:
            agent = create_agent(model, [make_code_tool(sb)])
    """
    calls, answers = SandboxCalls(sandbox, timeout), Answers(max_chars)

    async def run_code(code: Annotated[str, "The program's source text"]) -> tuple[str, ExecResult]:
        return await _answered(answers, calls.run_code, code)

    return _tool(run_code, name, calls.code_description)


def make_command_tool(
    sandbox: SandboxSource,
    *,
    name: str = "run_command",
    timeout: float = TIMEOUT_SECONDS,
    max_chars: int = MAX_CHARS,
) -> StructuredTool:
    """A tool that runs a line of shell. Arguments and errors are those of `make_code_tool`.

    Example: `agent = create_agent(model, [make_command_tool(sb)])`
    """
    calls, answers = SandboxCalls(sandbox, timeout), Answers(max_chars)

    async def run_command(command: Annotated[str, "The command line"]) -> tuple[str, ExecResult]:
        return await _answered(answers, calls.run_command, command)

    return _tool(run_command, name, calls.command_description)


async def _answered(
    answers: Answers, run: Callable[[str], Awaitable[ExecResult]], text: str
) -> tuple[str, ExecResult]:
    try:
        result = await run(text)
    except SandboxError as exc:
        from langchain_core.tools import ToolException

        raise ToolException(answers.error(exc)) from exc
    return answers.result(result), result


def _tool(
    coroutine: Callable[[str], Awaitable[tuple[str, ExecResult]]], name: str, description: str
) -> StructuredTool:
    try:
        from langchain_core.tools import StructuredTool
    except ImportError as exc:
        raise missing_extra("langchain-core", "langgraph") from exc
    return StructuredTool.from_function(
        coroutine=coroutine,
        name=name,
        description=description,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error="the arguments are malformed: give what the schema names, as text",
    )
