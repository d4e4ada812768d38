"""What sandboxio made on an engine: finding it again, describing it, removing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import anyio

from sandboxio.adapter.provision import LABEL_CREATION, LABEL_MANAGED
from sandboxio.errors import ConnectError, SandboxGone
from sandboxio.models import ManagedSandbox, Resources
from sandboxio_docker import labels as told
from sandboxio_docker.answer import Answer
from sandboxio_docker.container import SHELL, Container
from sandboxio_docker.engine import Engine
from sandboxio_docker.environment import stored
from sandboxio_docker.errors import EngineError
from sandboxio_docker.ownership import creation_of, is_own_container
from sandboxio_docker.runtime import parse_time
from sandboxio_docker.user import NOBODY_IN_PARTICULAR, User
from sandboxio_docker.volumes import Leftover, list_leftovers, remove_volumes

__all__ = [
    "Description",
    "describe",
    "kill_managed",
    "list_managed",
    "remove_created",
    "remove_sandbox",
]

_SETTLE_TRIES: Final = 5
_SETTLE_PAUSE: Final = 0.1
_NOT_FOUND: Final = 404
_REMOVED: Final = "removed"
"""The state of a sandbox whose container somebody removed, and whose volumes are left."""


@dataclass(frozen=True, slots=True)
class Description:
    """A running sandbox, as the engine describes it.

    Attributes:
        env: The caller's variables.
        remaining: Seconds that it still has.
        lifetime: Seconds that it had in all.
        loosened: The hardening switches that its maker had loosened.
    """

    id: str
    creation_id: str
    template: str
    runtime: str
    user: User
    limits: Resources
    pids_limit: int
    has_shell: bool
    env: Mapping[str, str]
    remaining: float
    lifetime: float
    metadata: Mapping[str, str]
    loosened: tuple[str, ...]


async def describe(engine: Engine, sandbox_id: str, now: datetime) -> Description:
    """A running sandbox by its id.

    Args:
        engine: The engine.
        sandbox_id: The container's id, or a beginning of it that is unique.
        now: The engine's own time, which a lifetime is measured with.

    Raises:
        SandboxGone: There is none of this id, or it has ended.
        ConnectError: sandboxio did not make it, or its labels do not say how long it lives.
    """
    found = await _inspect(engine, sandbox_id)
    state, config, host = found.part("State"), found.part("Config"), found.part("HostConfig")
    if not state["Running"]:
        raise SandboxGone(f"the container {sandbox_id[:12]} has ended")
    labels = config.texts("Labels")
    lifetime = told.lifetime(labels)
    if lifetime is None:
        raise ConnectError(
            f"the labels of the container {sandbox_id[:12]} do not say how long it lives",
            hint="somebody has made them up; end it with `sandboxio reap --kill`",
        )
    age = (now - parse_time(str(state["StartedAt"]))).total_seconds()
    uid, _, gid = str(config["User"]).partition(":")
    return Description(
        id=str(found["Id"]),
        creation_id=labels.get(LABEL_CREATION, ""),
        template=str(config["Image"]),
        runtime=str(host["Runtime"]),
        user=User(int(uid), int(gid)) if _is_id(uid) and _is_id(gid) else NOBODY_IN_PARTICULAR,
        limits=Resources(
            cpu=host.number("NanoCpus") / 1e9 or None,
            memory_mb=told.whole(labels.get(told.LABEL_MEMORY)),
            disk_mb=told.whole(labels.get(told.LABEL_DISK)),
        ),
        pids_limit=host.number("PidsLimit"),
        has_shell=config.items_of("Entrypoint")[:1] == [SHELL],
        env=stored(config.items_of("Env")),
        remaining=lifetime - age,
        lifetime=lifetime,
        metadata=told.metadata(labels),
        loosened=tuple(labels.get(told.LABEL_LOOSENED, "").split()),
    )


async def list_managed(engine: Engine, backend: str) -> tuple[ManagedSandbox, ...]:
    """All sandboxes of ours, ended ones that still exist included.

    One whose container somebody removed is listed for its volumes, by its creation id.
    """
    leftovers = await list_leftovers(engine)
    containers = [row for row in await _list(engine, f"{LABEL_MANAGED}=true") if _is_own(row)]
    present = {creation_of(row.texts("Labels")) for row in containers}
    return (
        *(_managed(row, backend) for row in containers),
        *(_managed_leftover(each, backend) for each in leftovers if each.creation_id not in present),
    )


async def kill_managed(engine: Engine, sandbox_id: str) -> None:
    """Remove a sandbox of ours with its volumes. One that is gone is success.

    Raises:
        ConnectError: sandboxio did not make it.
    """
    try:
        found = await _inspect(engine, sandbox_id)
    except SandboxGone:
        if creation_of({LABEL_MANAGED: "true", LABEL_CREATION: sandbox_id}):
            await remove_volumes(engine, sandbox_id)
        return
    labels = found.part("Config").texts("Labels")
    await remove_sandbox(Container(engine, str(found["Id"])), labels[LABEL_CREATION])


async def remove_sandbox(container: Container, creation_id: str) -> None:
    """Remove a container with its volumes, and these alone where somebody else removed the container."""
    if not await container.remove():
        await remove_volumes(container.engine, creation_id)


async def remove_created(engine: Engine, creation_id: str) -> bool:
    """Remove whatever carries a creation id, also what the engine is still busy making.

    Volumes are looked for by themselves: an engine that is told to remove a container which it is
    just starting can lose track of them.

    Returns:
        Whether there was a container.
    """
    label = f"{LABEL_CREATION}={creation_id}"
    removed = False
    for _ in range(_SETTLE_TRIES):
        found = [row for row in await _list(engine, label) if _is_own(row)]
        for row in found:
            await Container(engine, str(row["Id"])).remove()
        if removed and not found:
            break
        removed = removed or bool(found)
        await anyio.sleep(_SETTLE_PAUSE)
    for _ in range(_SETTLE_TRIES):
        if not await remove_volumes(engine, creation_id):
            break
        await anyio.sleep(_SETTLE_PAUSE)
    return removed


async def _inspect(engine: Engine, sandbox_id: str) -> Answer:
    if not sandbox_id or not sandbox_id.isascii() or not sandbox_id.isalnum():
        raise SandboxGone(f"{sandbox_id[:80]!r} is not the id of a container")
    try:
        found = await engine.get(f"/containers/{sandbox_id}/json")
    except EngineError as exc:
        if exc.status == _NOT_FOUND:
            raise SandboxGone(f"there is no container {sandbox_id[:12]}") from exc
        raise
    if not is_own_container(str(found["Name"]), found.part("Config").texts("Labels")):
        raise ConnectError(
            f"the container {sandbox_id[:12]} was not made by sandboxio, so it is left alone",
            hint="`sandboxio reap` lists the ones that were",
        )
    return found


async def _list(engine: Engine, label: str) -> list[Answer]:
    return await engine.get_list("/containers/json", all="1", filters=json.dumps({"label": [label]}))


def _is_own(row: Answer) -> bool:
    labels = row.texts("Labels")
    return any(is_own_container(str(name), labels) for name in row.items_of("Names"))


def _managed(row: Answer, backend: str) -> ManagedSandbox:
    labels = row.texts("Labels")
    created = datetime.fromtimestamp(row.number("Created"), UTC)
    return ManagedSandbox(
        id=str(row["Id"]),
        backend=backend,
        created_at=created,
        expires_at=told.expiry(labels, created),
        metadata=told.metadata(labels),
        state=str(row.get("State", "unknown")),
    )


def _managed_leftover(leftover: Leftover, backend: str) -> ManagedSandbox:
    return ManagedSandbox(
        id=leftover.creation_id,
        backend=backend,
        created_at=leftover.created_at,
        expires_at=told.expiry(leftover.labels, leftover.created_at),
        metadata=told.metadata(leftover.labels),
        state=_REMOVED,
    )


def _is_id(text: str) -> bool:
    return text == "0" or told.whole(text) is not None
