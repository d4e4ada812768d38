"""A container is known by its labels, whoever gives its id."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from docker_suite.images import PYTHON_IMAGE

from sandboxio.errors import ConnectError, SandboxGone
from sandboxio_docker import DockerBackend

pytestmark = pytest.mark.docker


@pytest.fixture
def foreign() -> Iterator[str]:
    client = docker.from_env()
    container = client.containers.run(PYTHON_IMAGE, ["sleep", "300"], detach=True, network_mode="none")
    yield container.id
    container.remove(force=True)
    client.close()


async def test_what_sandboxio_did_not_make_is_refused_and_left_alone(foreign: str) -> None:
    backend = DockerBackend()
    for call in (backend.connect, backend.kill_managed):
        with pytest.raises(ConnectError, match="not made by sandboxio"):
            await call(foreign)
    assert foreign not in {each.id for each in await backend.list_managed()}
    client = docker.from_env()
    assert client.containers.get(foreign).status == "running"
    client.close()


@pytest.mark.parametrize("sandbox_id", ["0" * 64, "../info", ""])
async def test_an_id_that_no_container_has_is_gone(sandbox_id: str) -> None:
    backend = DockerBackend()
    with pytest.raises(SandboxGone):
        await backend.connect(sandbox_id)
    await backend.kill_managed(sandbox_id)
