"""A fake, a server over it, and the SDK's own client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mcp.server.mcpserver import MCPServer

from sandboxio import NetworkPolicy
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.holder import Profile
from sandboxio.mcp.server import server_for_process
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import FakeBackend

CREDENTIAL = "a-credential-of-the-host"

ServerFor = Callable[[NetworkPolicy], "MCPServer[Sandboxes]"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def fake() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def server_for(fake: FakeBackend) -> ServerFor:
    def make(network: NetworkPolicy) -> MCPServer[Sandboxes]:
        profile = Profile(fake, network, lifetime=300)
        return server_for_process(profile, Redaction([CREDENTIAL]), progress_seconds=0.05)

    return make


@pytest.fixture
def server(server_for: ServerFor) -> MCPServer[Sandboxes]:
    return server_for(NetworkPolicy())
