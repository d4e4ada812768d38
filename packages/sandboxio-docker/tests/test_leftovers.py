"""A creation that is broken off at whatever moment leaves no container and no volume."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from sandboxio.errors import CreateTimeout
from sandboxio_docker import DockerBackend, DockerConfig
from sandboxio_docker.address import resolve_address
from sandboxio_docker.engine import Engine
from sandboxio_docker.reaper import reaper
from sandboxio_docker.transport import Transport

pytestmark = pytest.mark.docker

NOTHING: dict[str, Any] = dict.fromkeys(("template", "resources", "network", "env", "secrets", "metadata"))
MOMENTS = [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.15]


async def leftovers() -> int:
    engine = Engine(Transport(resolve_address()))
    filters = json.dumps({"label": [f"sandboxio.process={reaper().process_id}"]})
    containers = await engine.get_list("/containers/json", all="1", filters=filters)
    volumes = await engine.get("/volumes", filters=filters)
    return len(containers) + len(volumes.objects("Volumes"))


async def test_nothing_is_left_of_a_creation_that_takes_too_long() -> None:
    before = await leftovers()
    for seconds in MOMENTS:
        backend = DockerBackend(DockerConfig(create_timeout=seconds))
        try:
            sandbox = await backend.create(**NOTHING, timeout=60)
        except CreateTimeout:
            pass
        else:
            await sandbox.kill()
        assert await leftovers() == before, seconds


async def test_nothing_is_left_of_a_creation_that_is_cancelled() -> None:
    before = await leftovers()
    backend = DockerBackend()
    for seconds in MOMENTS:
        with anyio.move_on_after(seconds):
            sandbox = await backend.create(**NOTHING, timeout=60)
            await sandbox.kill()
        assert await leftovers() == before, seconds
