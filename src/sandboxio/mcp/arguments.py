"""Checks a call before the SDK does, whose own words name its internals and no fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from sandboxio.mcp.errors import explain
from sandboxio.mcp.refusals import ArgumentRefused

__all__ = ["ArgumentCheck"]

_MAX_NAMED: Final = 5


class ArgumentCheck:
    """A middleware that answers calls of unknown tools, and with arguments that do not fit.

    Args:
        tools: What can be called, by name.

    Example: `server.middleware.append(ArgumentCheck({"read_file": Tool.from_function(read_file)}))`
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Let everything pass but a call that would do nothing."""
        refusal = self._refusal(ctx.params or {}) if ctx.method == "tools/call" else None
        if refusal is None:
            return await call_next(ctx)
        return CallToolResult(content=[TextContent(text=explain(refusal))], is_error=True)

    def _refusal(self, params: Mapping[str, Any]) -> ArgumentRefused | None:
        name: object = params.get("name")
        arguments: object = params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return None  # no call at all, which is an error of the protocol and the SDK's to tell
        tool = self._tools.get(name)
        if tool is None:
            return ArgumentRefused(
                f"there is no tool {name[:100]!r}", hint=f"use one of {', '.join(self._tools)}"
            )
        try:
            tool.fn_metadata.validate_arguments(cast(dict[str, Any], arguments))
        except ValidationError as exc:
            return ArgumentRefused(f"{name} cannot take these arguments: {_faults(exc)}", hint=_usage(tool))
        return None


def _faults(exc: ValidationError) -> str:
    faults = [f"{fault['loc'][0]}: {fault['msg']}" for fault in exc.errors(include_input=False)]
    more = [f"and {len(faults) - _MAX_NAMED} more"] if len(faults) > _MAX_NAMED else []
    return "; ".join(faults[:_MAX_NAMED] + more)


def _usage(tool: Tool) -> str:
    fields = tool.fn_metadata.arg_model.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    optional = [name for name, field in fields.items() if not field.is_required()]
    usage = [f"needs {', '.join(needed)}"] if needed else []
    usage += [f"may be given {', '.join(optional)}"] if optional else []
    return f"correct what the message names; {tool.name} {' and '.join(usage) or 'takes no arguments'}"
