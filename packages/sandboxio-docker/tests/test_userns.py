"""An engine whose users are remapped: its volumes belong to other numbers outside than inside."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
from docker_suite.images import PYTHON_IMAGE

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import FileSystemError
from sandboxio.models import Resources
from sandboxio_docker import DockerBackend, DockerConfig

pytestmark = pytest.mark.docker


@pytest.fixture
async def remapped() -> AsyncIterator[Sandbox]:
    address = os.environ.get("SBX_TEST_DOCKER_USERNS")
    if not address:
        pytest.skip("SBX_TEST_DOCKER_USERNS does not name an engine with remapped users")
    backend = DockerBackend(DockerConfig(base_url=address))
    async with await backend.create(
        template=PYTHON_IMAGE,
        resources=Resources(disk_mb=16),
        network=None,
        env=None,
        secrets=None,
        timeout=120,
        metadata={"suite": "docker"},
    ) as sandbox:
        yield sandbox


async def test_the_working_folder_belongs_to_the_sandboxs_user_there_too(remapped: Sandbox) -> None:
    result = await remapped.run("id -u; stat -c '%u %a' /work; touch /work/x /tmp/x && echo written")
    assert result.stdout.split("\n")[:3] == ["65532", "65532 700", "written"]
    assert (await remapped.run("cat /proc/self/uid_map")).stdout.split()[1] != "0"


async def test_files_and_the_cap_on_disk_work_there_too(remapped: Sandbox) -> None:
    data = bytes(range(256)) * 1000
    await remapped.files.write("a.bin", data)
    assert await remapped.files.read("a.bin") == data
    with pytest.raises(FileSystemError, match="no space left"):
        await remapped.files.write("big.bin", b"x" * 20_000_000)
