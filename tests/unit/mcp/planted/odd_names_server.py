"""`python -m sandboxio.mcp` over a fake whose sandboxes hold a file that is called `b"a\\xff"`."""

import os
import sys
from typing import Any

import sandboxio
from sandboxio import AsyncSandbox
from sandboxio.mcp import main
from sandboxio.testing.fake import FakeBackend


class OddNames(FakeBackend):
    """The fake, with one file from the start."""

    async def create(self, **request: Any) -> AsyncSandbox:
        """Create one."""
        sandbox = await super().create(**request)
        await sandbox.files.write(os.fsdecode(b"a\xff"), b"")
        return sandbox


sandboxio.register("odd", f"{__name__}:OddNames")
sys.exit(main(["--backend", "odd://", *sys.argv[1:]]))
