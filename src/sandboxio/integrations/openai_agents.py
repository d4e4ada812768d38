"""Tools for agents of the OpenAI Agents SDK that run in a sandbox. The extra is `openai-agents`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from sandboxio.errors import SandboxError
from sandboxio.integrations.answers import MAX_CHARS
from sandboxio.integrations.calls import TIMEOUT_SECONDS, SandboxSource
from sandboxio.integrations.tool import SandboxTool, code_tool, command_tool, missing_extra

if TYPE_CHECKING:
    from agents import FunctionTool

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
    return _native(code_tool(sandbox, name, timeout=timeout, max_chars=max_chars))


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
    return _native(command_tool(sandbox, name, timeout=timeout, max_chars=max_chars))


def _native(tool: SandboxTool) -> FunctionTool:
    try:
        from agents import FunctionTool
    except ImportError as exc:
        raise missing_extra("openai-agents", "openai-agents") from exc

    async def invoke(_context: Any, arguments: str) -> str:
        text = _only_text(arguments, tool.argument)
        if text is None:
            return tool.malformed
        try:
            return tool.answers.result(await tool.run(text))
        except SandboxError as exc:
            return tool.answers.error(exc)

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {tool.argument: {"type": "string", "description": tool.meaning}},
        "required": [tool.argument],
        "additionalProperties": False,
    }
    return FunctionTool(tool.name, tool.description, schema, invoke)


def _only_text(arguments: str, name: str) -> str | None:
    try:
        given: object = json.loads(arguments)
    except (ValueError, TypeError, RecursionError):  # a model may nest as deep as it likes
        return None
    fields = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    text = fields.get(name)
    return text if isinstance(text, str) and len(fields) == 1 else None
