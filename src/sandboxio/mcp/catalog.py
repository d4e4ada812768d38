"""What the tools are called, and what a model is told about them and about the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from sandboxio.mcp.arguments import ArgumentCheck
from sandboxio.mcp.tools import Tools

__all__ = ["INSTRUCTIONS", "register_tools"]

INSTRUCTIONS: Final = (
    "Runs code, commands and file operations in one isolated sandbox that belongs to this session. The "
    "sandbox starts empty at the first call, keeps its files between calls, and is deleted when the "
    "session ends or its lifetime is over (see sandbox_info). It cannot see the user's machine or files: "
    "put in what it needs with write_file. Unless sandbox_info says otherwise it has no network, so "
    "packages cannot be installed. An error tells its fix; settings of the sandbox cannot be changed from "
    "here."
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tool as clients list it.

    Attributes:
        name: What it is called by; also the name of its function.
        title: What people see.
        description: What a model reads before it chooses.
        reads_only: It changes nothing.
        repeatable: Doing it twice is as good as once.
        runs_code: It can reach whatever the sandbox can.
    """

    name: str
    title: str
    description: str
    reads_only: bool = False
    repeatable: bool = False
    runs_code: bool = False


_CATALOG: Final = (
    _Entry(
        "run_python",
        "Run Python code",
        "Run Python code in the sandbox and return stdout, stderr and the exit code. Print what you want "
        "to see. Each call starts a fresh interpreter (variables are gone, files stay) unless you give a "
        "context. An exception of the code is reported in stderr with a non-zero exit code. Long output "
        "is cut in the middle; write large results to a file. Everything it started in the foreground is "
        "ended when timeout_seconds pass.",
        runs_code=True,
    ),
    _Entry(
        "run_command",
        "Run a command",
        "Run a shell command in the sandbox and return stdout, stderr and the exit code. Pipes, "
        "redirections and && work in a line; give a list instead to avoid quoting. Commands get no "
        "terminal and must not wait for input. A process started in the background with & lives on until "
        "the sandbox ends. Each call is a new shell: cd and exports do not carry over, so use cwd.",
        runs_code=True,
    ),
    _Entry(
        "read_file",
        "Read a file",
        "Read a file of the sandbox. Text comes as it is, in parts if it is long: read on with start_line "
        "set to next_line. A line too long for one answer is shown without its middle. PNG, JPEG, GIF and "
        "WebP come as pictures you can look at. A small file of another kind comes as base64.",
        reads_only=True,
        repeatable=True,
    ),
    _Entry(
        "write_file",
        "Write a file",
        "Create a file in the sandbox, or replace it whole. Missing folders above it are made. Prefer "
        "this to echo or heredocs in run_command. Give encoding base64 for binary content.",
        repeatable=True,
    ),
    _Entry(
        "list_files",
        "List files",
        "List one directory of the sandbox, sorted by name, without descending into others. Use "
        "run_command with find for a whole tree.",
        reads_only=True,
        repeatable=True,
    ),
    _Entry(
        "sandbox_info",
        "Describe the sandbox",
        "Tell what the sandbox is: backend, isolation, capabilities, what it may reach on the network, "
        "and how long it lives. It changes nothing and cannot be used to change settings.",
        reads_only=True,
        repeatable=True,
    ),
)


def register_tools(server: MCPServer[Any], tools: Tools, *, reaches_out: bool) -> None:
    """Offer all tools on a server.

    Args:
        server: Where they are offered.
        tools: What they do.
        reaches_out: Whether code in the sandbox can reach anything outside it.

    Example: `register_tools(server, tools, reaches_out=profile.reaches_out)`
    """
    known: dict[str, Tool] = {}  # as the server knows them, which it does not give away
    for entry in _CATALOG:
        function: Callable[..., Any] = getattr(tools, entry.name)
        known[entry.name] = Tool.from_function(function)
        server.add_tool(
            function,
            name=entry.name,
            title=entry.title,
            description=entry.description,
            annotations=ToolAnnotations(
                title=entry.title,
                read_only_hint=entry.reads_only,
                destructive_hint=not entry.reads_only,
                idempotent_hint=entry.repeatable,
                open_world_hint=entry.runs_code and reaches_out,
            ),
            structured_output=True,
        )
    server.middleware.append(ArgumentCheck(known))
