"""`python -m sandboxio.mcp` over a fake whose sandboxes hold a file that is called `b"a\\xff"`."""

import os
import sys
from collections.abc import Mapping

import sandboxio
from sandboxio import AsyncSandbox, NetworkPolicy, Resources
from sandboxio.mcp import main
from sandboxio.testing.fake import FakeBackend


class OddNames(FakeBackend):
    """The fake, with one file from the start."""

    async def create(
        self,
        *,
        template: str | None,
        resources: Resources | None,
        network: NetworkPolicy | None,
        env: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None,
        timeout: float,
        metadata: Mapping[str, str] | None,
    ) -> AsyncSandbox:
        """Create one."""
        sandbox = await super().create(
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
        )
        await sandbox.files.write(os.fsdecode(b"a\xff"), b"")
        return sandbox


sandboxio.register("odd", f"{__name__}:OddNames")
sys.exit(main(["--backend", "odd://", *sys.argv[1:]]))
