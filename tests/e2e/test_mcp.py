"""The MCP server on a real engine, and its image."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import docker
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "mcp-image.sh"
IMAGE = "sandboxio/mcp:test"
BASE = os.environ.get("SBX_DOCKER_IMAGE", "python:3.12-slim")
NOT_HERE = 3
NAMES = ["run_python", "run_command", "read_file", "write_file", "list_files", "sandbox_info"]
BOUND = 120.0

TREE = "sleep 1000 & echo $! > child; echo $$ > leader; wait"
WAIT_FOR_ITS_END = """
import os, time

pids = [open(name).read().strip() for name in ("leader", "child")]
for _ in range(200):
    left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    if not left:
        break
    time.sleep(0.1)
print(len(pids), "began,", len(left), "are left")
"""

pytestmark = pytest.mark.docker


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def containers(label: str) -> list[str]:
    """The names of all containers that the server of one test has made."""
    client = docker.from_env()
    try:
        return [found.id or "" for found in client.containers.list(all=True, filters={"label": label})]
    finally:
        client.close()


async def test_an_agent_host_works_in_a_container_that_is_gone_afterwards() -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "sandboxio.mcp"], env=dict(os.environ)
    )
    with anyio.fail_after(BOUND):
        async with Client(parameters) as client:
            info = structured(await client.call_tool("sandbox_info"))
            assert (info["backend"], info["egress"]) == ("docker", "deny")
            await client.call_tool("write_file", {"path": "data/in.txt", "content": "1\n2\n"})
            code = "print(sum(map(int, open('data/in.txt'))))"
            assert structured(await client.call_tool("run_python", {"code": code}))["stdout"] == "3\n"
            probe = "import socket; socket.create_connection(('1.1.1.1', 443), timeout=3)"
            assert structured(await client.call_tool("run_python", {"code": probe}))["exit_code"] == 1
            with pytest.raises(MCPError):
                await client.call_tool("run_command", {"command": TREE}, read_timeout_seconds=2)
            ended = structured(await client.call_tool("run_python", {"code": WAIT_FOR_ITS_END}))
            assert ended["stdout"] == "2 began, 0 are left\n"
    with anyio.fail_after(30):
        while info["sandbox_id"] in containers("sandboxio.managed=true"):
            await asyncio.sleep(0.1)


def failure(result: CallToolResult) -> str:
    (content,) = result.content
    assert result.is_error
    assert isinstance(content, TextContent)
    return content.text


async def test_what_code_in_a_container_does_to_files_ends_in_answers() -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "sandboxio.mcp"], env=dict(os.environ)
    )
    hostile = "touch $(printf 'a\\377b'); truncate -s 300M huge; ln -s huge link; mkfifo pipe; mkdir d"
    told = [
        ("read_file", {"path": "link"}, "Fix: find, cut or summarize the part that you need"),
        ("read_file", {"path": "pipe"}, "Fix: it is a device, a pipe or a socket"),
        ("read_file", {"path": "d"}, "Fix: give the path of a file"),
        ("write_file", {"path": "huge/x", "content": ""}, "Fix: a part of the path is a file"),
        (
            "write_file",
            {"path": "huge/x/y", "content": ""},
            "Fix: only a directory can be listed or hold files",
        ),
        ("run_python", {"code": "1", "context": "mine"}, "Fix: leave context out"),
        (
            "run_command",
            {"command": ["cat", "x" * 200_000]},
            "Fix: write what is long to a file with write_file",
        ),
    ]
    with anyio.fail_after(BOUND):
        async with Client(parameters) as client:
            structured(await client.call_tool("run_command", {"command": hostile}))
            names = [entry["name"] for entry in structured(await client.call_tool("list_files"))["entries"]]
            assert names == ["a\ufffdb", "d", "huge", "link", "pipe"]
            for tool, arguments, fix in told:
                assert fix in failure(await client.call_tool(tool, arguments)), (tool, arguments)


@pytest.fixture(scope="module")
def image() -> str:
    """The image, built from this checkout."""
    done = subprocess.run(
        [str(SCRIPT), IMAGE, "--base", BASE], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode == NOT_HERE and os.environ.get("SBX_REQUIRE_DOCKER") != "1":
        pytest.skip(f"the image cannot be built on this machine: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return IMAGE


def test_the_image_is_not_root_and_holds_no_socket_and_no_docker_client(image: str) -> None:
    client = docker.from_env()
    try:
        config = client.images.get(image).attrs["Config"]
        assert config["User"] == "10001:10001"
        assert not config.get("Volumes")
    finally:
        client.close()
    looked_for = "ls /var/run/docker.sock /run/docker.sock; python -c 'import docker'"
    script = f"id -u; {looked_for}; touch /x /opt/sandboxio/x"
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "10001\n"
    assert done.stderr.count("No such file") == 2
    assert "No module named 'docker'" in done.stderr
    assert done.stderr.count("Permission denied") == 2


async def test_the_image_lists_six_tools_and_tells_what_credential_it_lacks(image: str) -> None:
    confined = [
        "--network",
        "none",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
    ]
    parameters = StdioServerParameters(
        command="docker", args=["run", "-i", "--rm", *confined, image], env=dict(os.environ)
    )
    with anyio.fail_after(BOUND):
        async with Client(parameters) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            result = await client.call_tool("sandbox_info")
    assert result.is_error
    assert "E2B_API_KEY" in str(result.content[0])
