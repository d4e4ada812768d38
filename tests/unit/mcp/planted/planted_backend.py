"""A backend that does what careless libraries do: it prints, writes to descriptor 1, and has a child do so.

When the process ends it writes down how many sandboxes it made and how many were left.
"""

import atexit
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sandboxio import AsyncSandbox, NetworkPolicy, Resources
from sandboxio.testing.fake import FakeBackend, FakeConfig

print("imported", flush=True)


class PlantedBackend(FakeBackend):
    """The fake, with a loud mouth."""

    def __init__(self, config: FakeConfig | None = None) -> None:
        super().__init__(config)
        atexit.register(self._end)

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
        """Create one, loudly."""
        print("creating", flush=True)
        os.write(1, b"written to descriptor 1\n")
        subprocess.run(["sh", "-c", "cat; echo a child"], timeout=10, check=True)
        return await super().create(
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
        )

    def _end(self) -> None:
        print("exiting", flush=True)
        made = [call.operation for call in self.calls].count("create")
        text = f"made {made}, left {len(self.sandboxes)}, token {'SBX_MCP_TOKEN' in os.environ}"
        Path(os.environ["PLANTED_RECORD"]).write_text(text, encoding="utf-8")
