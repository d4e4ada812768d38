"""A file whose name is no UTF-8, told over a real standard output, where writing is what used to fail."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

SERVER = Path(__file__).parent / "planted" / "odd_names_server.py"
BOUND = 60.0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_listing_with_such_a_name_is_answered_and_the_server_lives_on(mode: str) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=dict(os.environ))
    with anyio.fail_after(BOUND):
        async with Client(parameters, mode=mode) as client:
            listing = await client.call_tool("list_files")
            after = await client.call_tool("run_command", {"command": "echo alive"})
    assert listing.structured_content is not None
    assert [entry["name"] for entry in listing.structured_content["entries"]] == ["a\ufffd"]
    assert after.structured_content is not None
    assert after.structured_content["stdout"] == "alive\n"
