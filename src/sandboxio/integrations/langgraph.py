"""Tools for LangGraph and LangChain agents that run in a sandbox. The extra is `langgraph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandboxio import ExecResult
from sandboxio.errors import SandboxError
from sandboxio.integrations.answers import MAX_CHARS
from sandboxio.integrations.calls import TIMEOUT_SECONDS, SandboxSource
from sandboxio.integrations.tool import SandboxTool, code_tool, command_tool, missing_extra

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
    return _native(code_tool(sandbox, name, timeout=timeout, max_chars=max_chars))


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
    return _native(command_tool(sandbox, name, timeout=timeout, max_chars=max_chars))


def _native(tool: SandboxTool) -> StructuredTool:
    try:
        from langchain_core.tools import StructuredTool, ToolException
        from pydantic import ConfigDict, Field, create_model
    except ImportError as exc:
        raise missing_extra("langchain-core", "langgraph") from exc

    async def invoke(**arguments: str) -> tuple[str, ExecResult]:
        try:
            result = await tool.run(arguments[tool.argument])
        except SandboxError as exc:
            raise ToolException(tool.answers.error(exc)) from exc
        return tool.answers.result(result), result

    field: Any = (str, Field(description=tool.meaning))
    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=create_model(tool.name, __config__=ConfigDict(extra="forbid"), **{tool.argument: field}),
        coroutine=invoke,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=tool.malformed,
    )
