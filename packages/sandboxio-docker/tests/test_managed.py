"""A container is known by its labels, whoever gives its id."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import anyio
import docker
import pytest
from docker_suite.factory import SandboxFactory
from docker_suite.images import PYTHON_IMAGE

from sandboxio.errors import ConnectError, SandboxGone
from sandboxio.models import ManagedSandbox
from sandboxio_docker import DockerBackend
from sandboxio_docker.address import resolve_address
from sandboxio_docker.engine import Engine
from sandboxio_docker.transport import Transport

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


BAD_LABELS = {
    "sandboxio.lifetime": [
        "NaN",
        "inf",
        "1e400",
        "99999999999999999999",
        "-99999999999999999999",
        "[]",
        "\x1b[2J",
    ],
    "sandboxio.metadata": ["5", "[" * 1500, '["\x1b"]'],
    "sandboxio.memory_mb": ["9" * 5000],
}


@pytest.fixture
def made_up() -> Iterator[dict[str, tuple[str, str]]]:
    """Containers that pass for sandboxes of ours, each with one label that cannot be read."""
    client = docker.from_env()
    made: dict[str, tuple[str, str]] = {}
    containers: list[Any] = []
    for label, values in BAD_LABELS.items():
        for value in values:
            creation = uuid4().hex
            labels = {"sandboxio.managed": "true", "sandboxio.creation": creation, label: value}
            name = f"sandboxio-{creation[:16]}"
            containers.append(client.containers.create(PYTHON_IMAGE, ["true"], name=name, labels=labels))
            made[containers[-1].id] = (label, value)
    yield made
    for container in containers:
        container.remove(force=True)
    client.close()


async def listed(id: str) -> list[ManagedSandbox]:  # noqa: A002 -- the engine's own word
    return [each for each in await DockerBackend().list_managed() if each.id == id]


async def test_labels_that_cannot_be_read_hide_nothing(
    made_up: dict[str, tuple[str, str]], create: SandboxFactory
) -> None:
    sandbox = await create()
    found = {each.id: each for each in await DockerBackend().list_managed()}
    assert found[sandbox.id].expires_at is not None
    assert found[sandbox.id].metadata == {"suite": "docker"}
    for container in made_up:
        assert (found[container].expires_at, dict(found[container].metadata)) == (None, {})


@pytest.mark.parametrize("sandbox_id", ["a\nb", "\x1b[2J", "\ud800", "1f/../2e"])
async def test_an_id_with_odd_characters_is_gone_and_asks_for_nothing(sandbox_id: str) -> None:
    with pytest.raises(SandboxGone):
        await DockerBackend().connect(sandbox_id)
    await DockerBackend().kill_managed(sandbox_id)


async def test_what_a_user_makes_of_a_snapshot_is_theirs(create: SandboxFactory) -> None:
    sandbox = await create()
    client = docker.from_env()
    image = client.containers.get(sandbox.id).commit("sandboxio/snapshot", "test-changed")
    theirs = client.containers.run(
        image.id, detach=True, entrypoint=["sleep", "300"], network_mode="none", auto_remove=False
    )
    try:
        assert (
            theirs.labels["sandboxio.creation"]
            == client.containers.get(sandbox.id).labels["sandboxio.creation"]
        )
        assert not await listed(theirs.id)
        for call in (DockerBackend().connect, DockerBackend().kill_managed):
            with pytest.raises(ConnectError, match="not made by sandboxio"):
                await call(theirs.id)
        await sandbox.kill()
        theirs.reload()
        assert theirs.status == "running"
        again = await create(template="sandboxio/snapshot:test-changed", env={"A": "b"})
        assert (await again.run("echo $A")).stdout == "b\n"
        assert (await listed(again.id))[0].state == "running"
        await again.kill()
    finally:
        theirs.remove(force=True, v=True)
        client.images.remove(image.id, force=True)
        client.close()


async def volumes_of(creation: str) -> int:
    filters = json.dumps({"label": [f"sandboxio.creation={creation}"]})
    answer = await Engine(Transport(resolve_address())).get("/volumes", filters=filters)
    return len(answer.objects("Volumes"))


def removed_behind_our_back(container: str) -> str:
    """Remove a container as somebody with `docker` would, and return its creation id."""
    form = '{{index .Config.Labels "sandboxio.creation"}}'
    shown = subprocess.run(
        ["docker", "inspect", "-f", form, container], capture_output=True, text=True, check=True
    )
    subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=True)
    return shown.stdout.strip()


async def test_the_end_of_a_sandbox_that_somebody_removed_leaves_no_volume(create: SandboxFactory) -> None:
    sandbox = await create()
    creation = await anyio.to_thread.run_sync(removed_behind_our_back, sandbox.id)
    assert await volumes_of(creation) == 2
    await sandbox.kill()
    assert await volumes_of(creation) == 0


async def test_volumes_whose_container_somebody_removed_are_listed_and_ended(create: SandboxFactory) -> None:
    sandbox = await create()
    creation = await anyio.to_thread.run_sync(removed_behind_our_back, sandbox.id)
    (left,) = await listed(creation)
    assert (left.state, dict(left.metadata)) == ("removed", {"suite": "docker"})
    assert left.created_at is not None
    assert left.expires_at is not None
    await DockerBackend().kill_managed(creation)
    assert not await listed(creation)
    assert await volumes_of(creation) == 0


async def test_volumes_of_a_container_are_neither_listed_nor_ended_by_themselves(
    create: SandboxFactory,
) -> None:
    """Nor are those of a creation in flight: the engine refers to both in the same way."""
    sandbox = await create()
    creation = docker.from_env().containers.get(sandbox.id).labels["sandboxio.creation"]
    assert not await listed(creation)
    await DockerBackend().kill_managed(creation)
    assert await volumes_of(creation) == 2
    assert (await sandbox.run("echo kept")).stdout == "kept\n"


async def test_a_creation_in_flight_survives_a_sweep_of_what_is_left() -> None:
    """Sweeping as fast as it can while sandboxes come to be, and only what is left without a container."""
    backend = DockerBackend()
    swept: list[str] = []
    done = anyio.Event()

    async def sweep() -> None:
        while not done.is_set():
            for each in await backend.list_managed():
                if each.state == "removed" and each.metadata.get("flight") == "yes":
                    swept.append(each.id)
                    await backend.kill_managed(each.id)

    async with anyio.create_task_group() as group:
        group.start_soon(sweep)
        nothing: dict[str, Any] = dict.fromkeys(("template", "resources", "network", "env", "secrets"))
        for _ in range(5):
            async with await backend.create(**nothing, timeout=60, metadata={"flight": "yes"}) as sandbox:
                assert (await sandbox.run("echo x >kept && cat kept")).stdout == "x\n"
        done.set()
