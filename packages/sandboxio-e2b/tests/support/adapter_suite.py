"""What the tests of the adapter need of a sandbox on the local server."""

from __future__ import annotations

from typing import Any

import anyio
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio_e2b import E2BBackend, E2BConfig

__all__ = ["create", "require_fine", "settled", "sleepers"]

_SLEEPERS = r"""
for file in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$file; echo; done 2>/dev/null | grep -c '^sleep 300 $'
"""


async def create(*, create_timeout: float = 60.0, lifetime: float = 120.0, **more: Any) -> Sandbox:
    """A sandbox of the backend with its defaults; `more` goes to `Backend.create`."""
    backend = E2BBackend(E2BConfig(create_timeout=create_timeout))
    arguments = dict.fromkeys(("template", "resources", "network", "env", "secrets", "metadata"))
    return await backend.create(**{**arguments, "timeout": lifetime, **more})


async def settled(server: E2BServer) -> set[str]:
    """The sandboxes that are there once every boot and shutdown has come to its end."""
    return {each.id for each in await anyio.to_thread.run_sync(server.leftovers)}


async def sleepers(sandbox: Sandbox) -> int:
    """How many processes of the sandbox are a `sleep 300`."""
    return int((await sandbox.run(_SLEEPERS)).stdout)


async def require_fine(server: E2BServer, sandbox: Sandbox) -> None:
    """Nothing of earlier executions is left, once the server has heard of it, and the sandbox goes on."""
    with anyio.fail_after(10):
        while server.processes(sandbox.id):
            await anyio.sleep(0.05)
    assert await sleepers(sandbox) == 0
    result = await sandbox.run("echo fine")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "fine\n", "")
