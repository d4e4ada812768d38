"""Write the list of tools that the image catalog shows, from the tools that the MCP server really offers.

python scripts/gen_mcp_tools.py [--check] [--file PATH]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.holder import Profile
from sandboxio.mcp.options import Options
from sandboxio.mcp.server import server_for_process

TARGET = Path(__file__).parents[1] / "docker" / "mcp" / "tools.json"


def argument_type(schema: dict[str, Any]) -> str:
    """Return the catalog's one word for a schema; of several forms it is the first."""
    return str(schema.get("anyOf", [schema])[0]["type"])


async def live_tools() -> list[dict[str, Any]]:
    """Ask a server for its tools and put them into the catalog's form."""
    profile = Profile.from_options(Options(backend="fake://"))
    async with Client(server_for_process(profile, Redaction([]))) as client:
        tools = (await client.list_tools()).tools
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "arguments": [
                {"name": name, "type": argument_type(schema), "desc": schema["description"]}
                for name, schema in tool.input_schema["properties"].items()
            ],
        }
        for tool in tools
    ]


def main(arguments: list[str]) -> int:
    """Write the file, or say whether it is up to date."""
    parser = argparse.ArgumentParser(
        description="Write the MCP server's tools into the image catalog's file."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the file is stale")
    parser.add_argument("--file", type=Path, default=TARGET, metavar="PATH")
    options = parser.parse_args(arguments)

    text = json.dumps(anyio.run(live_tools), indent=2, ensure_ascii=False) + "\n"
    if not options.check:
        options.file.write_text(text, encoding="utf-8")
        return 0
    if options.file.read_text(encoding="utf-8") == text:
        return 0
    print(f"{options.file.name} is stale; run: python scripts/gen_mcp_tools.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
