"""That the fix in an error is one that a model can apply, or tell its user."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import TextContent

from sandboxio import (
    AuthError,
    Capability,
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    CreateTimeout,
    CreationError,
    FileSystemError,
    NetworkPolicy,
    PathNotFound,
    RateLimitError,
    ResourceLimitExceeded,
    SandboxError,
)
from sandboxio.adapter.validation import ARGUMENT_LIMIT_BYTES, require_fitting
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.fixes import fix_for
from sandboxio.mcp.holder import Profile
from sandboxio.mcp.server import server_for_process
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import ALL_CAPABILITIES, FakeBackend, FakeConfig

FOR_PROGRAMS = re.compile(r"\w\(|files\.|exc\.|\w+=|context_id|Resources|Config\b")
PREPARE = {"command": "echo 1 > file; mkdir folder; mkfifo pipe; ln -s loop loop"}


async def fix_of(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    found = re.search(r"^Fix: (.*)$", content.text, re.MULTILINE)
    assert found, content.text
    assert not FOR_PROGRAMS.search(found[1]), found[1]
    return found[1]


@pytest.mark.parametrize(
    ("tool", "arguments", "fix"),
    [
        ("read_file", {"path": "folder"}, "list_files shows"),
        ("write_file", {"path": "folder", "content": ""}, "list_files shows"),
        ("write_file", {"path": "file/below", "content": ""}, "which part of the path is a file"),
        ("write_file", {"path": "file/far/below", "content": ""}, "which part of the path is a file"),
        ("read_file", {"path": "file/below"}, "see with list_files which part of the path is a file"),
        ("list_files", {"path": "file"}, "only a directory can be listed"),
        ("read_file", {"path": "pipe"}, "run_command"),
        ("read_file", {"path": "loop"}, "run_command"),
        ("read_file", {"path": "missing"}, "look at what exists with list_files"),
        ("run_command", {"command": "ls", "cwd": "missing"}, "give cwd a folder"),
        ("run_command", {"command": []}, "give a program first"),
        ("run_command", {"command": ""}, "give a line for the shell"),
        ("run_command", {"command": "a\0b"}, "remove the NUL character"),
    ],
)
async def test_what_a_call_did_wrong_is_mended_with_the_tools(
    server: MCPServer[Sandboxes], tool: str, arguments: dict[str, Any], fix: str
) -> None:
    async with Client(server) as client:
        await client.call_tool("run_command", PREPARE)
        assert fix in await fix_of(client, tool, arguments)


def test_what_is_too_long_for_a_command_goes_into_a_file() -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_fitting(["x" * (ARGUMENT_LIMIT_BYTES + 1)], {})
    assert "write_file" in fix_for(caught.value)
    assert not FOR_PROGRAMS.search(fix_for(caught.value))


async def test_a_context_where_there_is_none_is_to_be_left_out() -> None:
    fake = FakeBackend(FakeConfig(capabilities=ALL_CAPABILITIES & ~Capability.STATEFUL_CODE))
    server = server_for_process(Profile(fake, NetworkPolicy(), 300), Redaction([]))
    async with Client(server) as client:
        fix = await fix_of(client, "run_python", {"code": "1", "context": "mine"})
    assert fix.startswith("leave context out")


@pytest.mark.parametrize(
    "error",
    [
        CreationError("no room"),
        AuthError("no key"),
        CapabilityNotSupported("no allow list"),
        ConfigurationError("the target is malformed"),
        ConnectError("the engine does not answer", hint="run `sandboxio doctor`"),
        CreateTimeout("too slow"),
        RateLimitError("too many"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_only_the_operator_can_mend_is_for_the_user(
    server: MCPServer[Sandboxes], fake: FakeBackend, error: SandboxError
) -> None:
    async with Client(server) as client:
        with fake.failing_creates(error):
            fix = await fix_of(client, "sandbox_info", {})
    assert f"tell the user, who can mend it outside: {error.hint}" in fix
    worth_it = isinstance(error, ConnectError | CreateTimeout | RateLimitError)
    assert fix.startswith("call the tool again") is worth_it
    assert ("--backend docker://" in fix) is isinstance(error, CreationError)


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (CapabilityNotSupported("this sandbox has no shell (sh)"), "give command as a list"),
        (CapabilityNotSupported("the template keeps no context for 'r'"), "leave context out"),
        (CapabilityNotSupported("the image lacks a tool"), "what the sandbox has is fixed"),
        (FileSystemError("'file/below' exists already"), "a part of the path is a file"),
        (FileSystemError("'/dev/x' is neither a file nor a directory"), "it is a device, a pipe or a socket"),
        (FileSystemError("no space left on device for 'a'"), "remove files"),
        (FileSystemError("'/etc/x' lies on a read-only file system"), "below the home folder or /tmp"),
        (FileSystemError("'/root' may not be used by the sandbox's user"), "below the home folder or /tmp"),
        (FileSystemError("'a' has a part that is too long"), "at most 255 bytes"),
        (FileSystemError("the working folder /root cannot be entered"), "give cwd a folder"),
        (FileSystemError("the operation on 'a' failed with code 9"), "look at the path with list_files"),
        (PathNotFound("'is a directory' does not exist"), "look at what exists"),
        (ResourceLimitExceeded("the limit of 64 processes"), "use less of what the message names"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_adapters_report_has_a_fix_for_a_model(error: SandboxError, fix: str) -> None:
    assert fix in fix_for(error)
    assert not FOR_PROGRAMS.search(fix_for(error))
