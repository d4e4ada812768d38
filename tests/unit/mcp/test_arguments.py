"""What a call that cannot be made is answered with, and that text stays text."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import TextContent

from sandboxio import ExecResult
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import FakeBackend

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def refused(server: MCPServer[Sandboxes], mode: str, tool: str, arguments: dict[str, Any]) -> str:
    async with Client(server, mode=mode) as client:
        result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert result.is_error
    assert isinstance(content, TextContent)
    return content.text


@MODES
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("write_file", {"path": "a"}, "content: Field required"),
        ("write_file", {}, "path: Field required; content: Field required"),
        ("write_file", {"path": "", "content": ""}, "path: String should have at least 1 character"),
        ("write_file", {"path": "a", "content": "", "encoding": "latin"}, "encoding: "),
        ("run_python", {"code": 5}, "code: Input should be a valid string"),
        (
            "run_python",
            {"code": "1", "timeout_seconds": 0},
            "timeout_seconds: Input should be greater than 0",
        ),
        ("run_command", {"command": 5}, "command: Input should be a text or a list of texts"),
        ("run_command", {"command": ["ls", 5]}, "command: Input should be a text or a list of texts"),
        ("read_file", {"path": "a", "start_line": 0}, "start_line: "),
    ],
)
async def test_arguments_that_do_not_fit_are_told_with_code_and_fix(
    server: MCPServer[Sandboxes],
    fake: FakeBackend,
    mode: str,
    tool: str,
    arguments: dict[str, Any],
    told: str,
) -> None:
    text = await refused(server, mode, tool, arguments)
    assert text.startswith(f"[SBX_E1000] {tool} cannot take these arguments: {told}")
    assert f"\nFix: correct what the message names; {tool} needs " in text
    for internal in ("pydantic", "Arguments", "Error executing"):
        assert internal not in text
    assert not fake.calls


@MODES
async def test_an_unknown_tool_is_told_with_the_ones_there_are(
    server: MCPServer[Sandboxes], mode: str
) -> None:
    text = await refused(server, mode, "run_ruby", {})
    assert text.startswith(
        "[SBX_E1000] there is no tool 'run_ruby'\nFix: use one of run_python, run_command, "
    )


LOOKS_LIKE_JSON = ["null", "{}", "[]", '["echo", "hi"]', '{"a": 1}', "true", "5", '"quoted"']


@pytest.mark.parametrize("line", LOOKS_LIKE_JSON)
async def test_a_line_that_looks_like_json_reaches_the_shell(
    server: MCPServer[Sandboxes], fake: FakeBackend, line: str
) -> None:
    fake.on_run(line, returns=ExecResult(0, "reached", ""))
    async with Client(server) as client:
        result = await client.call_tool("run_command", {"command": line})
        assert not result.is_error, result.content
        assert fake.calls[-1].command == line


@pytest.mark.parametrize("text", LOOKS_LIKE_JSON)
async def test_every_other_text_that_looks_like_json_stays_as_it_is(
    server: MCPServer[Sandboxes], fake: FakeBackend, text: str
) -> None:
    fake.on_run_code(text, returns=ExecResult(0, "reached", ""))
    async with Client(server) as client:
        code = await client.call_tool("run_python", {"code": text, "context": text})
        written = await client.call_tool("write_file", {"path": text, "content": text})
        read = await client.call_tool("read_file", {"path": text})
        fed = await client.call_tool("run_command", {"command": "cat", "stdin": text})
    for result in (code, written, read, fed):
        assert not result.is_error, result.content
    assert read.structured_content is not None
    assert fed.structured_content is not None
    assert read.structured_content["content"] == fed.structured_content["stdout"] == text
