"""The images to test with, and how a test asks for a sandbox of one."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any, Protocol

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker import DockerConfig

PYTHON_IMAGE = os.environ.get("SBX_DOCKER_IMAGE") or "python:3.12-slim"
BUSYBOX_IMAGE = "sandboxio/busybox:test"
SHELLLESS_IMAGE = "sandboxio/noshell:test"


class Create(Protocol):
    """Creates a sandbox that is ended with the test."""

    def __call__(
        self,
        *,
        template: str | None = None,
        config: DockerConfig | None = None,
        resources: Resources | None = None,
        network: NetworkPolicy | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Coroutine[Any, Any, Sandbox]: ...
