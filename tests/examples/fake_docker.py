"""The fake in Docker's place: it takes Docker's configuration, and keeps what of it the fake knows."""

from __future__ import annotations

from sandboxio.testing.fake import FakeBackend, FakeConfig
from sandboxio_docker import DockerConfig


class FakeDocker(FakeBackend):
    """A fake that is configured like Docker."""

    config_type = DockerConfig  # type: ignore[assignment]

    def __init__(self, config: DockerConfig) -> None:
        super().__init__(FakeConfig(template=config.template, audit=config.audit))
        self.on_run_code("import platform", returns="hello from Linux with Python 3.12\n")
