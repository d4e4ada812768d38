"""What clients and registries are told about the tools."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import Tool

import sandboxio
from sandboxio import NetworkPolicy
from sandboxio.mcp.sessions import Sandboxes

from .conftest import ServerFor

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docker" / "mcp"
SCRIPT = ROOT / "scripts" / "gen_mcp_tools.py"
NAMES = ["run_python", "run_command", "read_file", "write_file", "list_files", "sandbox_info"]


async def tools_of(server: MCPServer[Sandboxes]) -> dict[str, Tool]:
    async with Client(server) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


async def test_there_are_six_tools(server: MCPServer[Sandboxes]) -> None:
    assert list(await tools_of(server)) == NAMES


async def test_every_tool_has_title_description_and_both_schemas(server: MCPServer[Sandboxes]) -> None:
    for tool in (await tools_of(server)).values():
        assert tool.title
        assert tool.description
        assert tool.output_schema is not None
        assert "note" in tool.output_schema["properties"]
        for name, argument in tool.input_schema["properties"].items():
            assert argument.get("description"), (tool.name, name)


async def test_hints_say_which_tools_only_read(server: MCPServer[Sandboxes]) -> None:
    hints = {name: tool.annotations for name, tool in (await tools_of(server)).items()}
    reading = {name for name, hint in hints.items() if hint and hint.read_only_hint}
    destructive = {name for name, hint in hints.items() if hint and hint.destructive_hint}
    repeatable = {name for name, hint in hints.items() if hint and hint.idempotent_hint}
    assert reading == {"read_file", "list_files", "sandbox_info"}
    assert destructive == {"run_python", "run_command", "write_file"}
    assert repeatable == reading | {"write_file"}


@pytest.mark.parametrize(
    ("network", "reaching"),
    [
        (NetworkPolicy(), set[str]()),
        (NetworkPolicy(egress="allow"), {"run_python", "run_command"}),
        (NetworkPolicy(allow=("example.org",)), {"run_python", "run_command"}),
        (NetworkPolicy(egress="learn"), set[str]()),
    ],
    ids=["deny", "allow", "list", "learn"],
)
async def test_what_runs_code_is_of_the_open_world_if_the_policy_says_so(
    server_for: ServerFor, network: NetworkPolicy, reaching: set[str]
) -> None:
    tools = await tools_of(server_for(network))
    assert {
        name for name, tool in tools.items() if tool.annotations and tool.annotations.open_world_hint
    } == reaching


async def test_the_server_introduces_itself(server: MCPServer[Sandboxes]) -> None:
    async with Client(server, mode="legacy") as client:
        assert client.server_info.name == "sandboxio"
        assert client.server_info.version == sandboxio.__version__
        assert client.instructions is not None
        assert "sandbox" in client.instructions


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60
    )


def test_the_list_for_the_image_catalog_is_the_live_one() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stale_list_is_noticed(tmp_path: Path) -> None:
    stale = tmp_path / "tools.json"
    text = (FOLDER / "tools.json").read_text(encoding="utf-8")
    stale.write_text(text.replace("Run Python code", "Run code"), encoding="utf-8")
    assert generate("--check", "--file", str(stale)).returncode == 1
    assert generate("--file", str(stale)).returncode == 0
    assert stale.read_text(encoding="utf-8") == text


def test_the_catalog_entry_names_the_credential_and_asks_for_no_volume() -> None:
    entry = yaml.safe_load((FOLDER / "server.yaml").read_text(encoding="utf-8"))
    assert entry["type"] == "server"
    assert [secret["env"] for secret in entry["config"]["secrets"]] == ["E2B_API_KEY"]
    assert "volumes" not in entry.get("run", {})


def test_the_registry_entry_has_the_version_of_the_library() -> None:
    entry = json.loads((FOLDER / "server.json").read_text(encoding="utf-8"))
    (package,) = entry["packages"]
    assert entry["version"] == sandboxio.__version__
    assert package["identifier"].endswith(f":{sandboxio.__version__}")
    assert package["transport"] == {"type": "stdio"}


def test_the_image_is_labelled_with_the_name_of_the_registry_entry() -> None:
    entry = json.loads((FOLDER / "server.json").read_text(encoding="utf-8"))
    label = f'io.modelcontextprotocol.server.name="{entry["name"]}"'
    assert label in (FOLDER / "Dockerfile").read_text(encoding="utf-8")
