"""A sandbox for a test, and an image that was changed for one."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Iterator

import docker
import pytest
from docker_suite.factory import SandboxFactory
from docker_suite.images import PYTHON_IMAGE, ImageBuilder

from sandboxio.adapter.sandbox import Sandbox


@pytest.fixture
async def create() -> AsyncIterator[SandboxFactory]:
    factory = SandboxFactory()
    yield factory
    await factory.kill_all()


@pytest.fixture
async def sandbox(create: SandboxFactory) -> Sandbox:
    return await create()


@pytest.fixture
def build() -> Iterator[ImageBuilder]:
    """Makes an image out of another one by changing what it declares."""
    client = docker.from_env()
    names: list[str] = []

    def make(name: str, *changes: str, base: str = PYTHON_IMAGE) -> str:
        tag = f"sandboxio/{name}:test-changed"
        dockerfile = "\n".join([f"FROM {base}", *changes]).encode()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            info = tarfile.TarInfo("Dockerfile")
            info.size = len(dockerfile)
            tar.addfile(info, io.BytesIO(dockerfile))
        archive.seek(0)
        client.images.build(fileobj=archive, custom_context=True, tag=tag, rm=True, network_mode="none")
        names.append(tag)
        return tag

    yield make
    for tag in names:
        client.images.remove(tag, force=True)
    client.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
