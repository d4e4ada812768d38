"""What sandboxio made on an engine: finding it again, describing it, removing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio

from sandboxio.adapter.provision import LABEL_CREATION, LABEL_MANAGED
from sandboxio.errors import ConnectError, SandboxGone
from sandboxio.models import ManagedSandbox, Resources
from sandboxio_docker.container import SHELL, Container
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError
from sandboxio_docker.hardening import (
    LABEL_DISK,
    LABEL_LIFETIME,
    LABEL_LOOSENED,
    LABEL_MEMORY,
    LABEL_METADATA,
)
from sandboxio_docker.runtime import parse_time
from sandboxio_docker.user import NOBODY_IN_PARTICULAR, User

__all__ = ["Description", "describe", "kill_managed", "list_managed", "remove_created"]

_SETTLE_TRIES: Final = 5
_SETTLE_PAUSE: Final = 0.1
_NOT_FOUND: Final = 404
_IN_USE: Final = 409


@dataclass(frozen=True, slots=True)
class Description:
    """A running sandbox, as the engine describes it.

    Attributes:
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
        ConnectError: sandboxio did not make it.
    """
    found = await _inspect(engine, sandbox_id)
    if not found["State"]["Running"]:
        raise SandboxGone(f"the container {sandbox_id[:12]} has ended")
    config, host = found["Config"], found["HostConfig"]
    labels: dict[str, str] = config["Labels"]
    lifetime = float(labels.get(LABEL_LIFETIME, "0"))
    age = (now - parse_time(found["State"]["StartedAt"])).total_seconds()
    uid, _, gid = str(config["User"]).partition(":")
    return Description(
        id=str(found["Id"]),
        creation_id=labels.get(LABEL_CREATION, ""),
        template=str(config["Image"]),
        runtime=str(host["Runtime"]),
        user=User(int(uid), int(gid)) if uid.isdecimal() and gid.isdecimal() else NOBODY_IN_PARTICULAR,
        limits=Resources(
            cpu=host["NanoCpus"] / 1e9 or None,
            memory_mb=_whole(labels.get(LABEL_MEMORY)),
            disk_mb=_whole(labels.get(LABEL_DISK)),
        ),
        pids_limit=int(host.get("PidsLimit") or 0),
        has_shell=list(config.get("Entrypoint") or ())[:1] == [SHELL],
        remaining=lifetime - age,
        lifetime=lifetime,
        metadata=_metadata(labels),
        loosened=tuple(labels.get(LABEL_LOOSENED, "").split()),
    )


async def list_managed(engine: Engine, backend: str) -> tuple[ManagedSandbox, ...]:
    """All containers of ours, ended ones that still exist included."""
    found = await _list(engine, f"{LABEL_MANAGED}=true")
    return tuple(_managed(row, backend) for row in found)


async def kill_managed(engine: Engine, sandbox_id: str) -> None:
    """Remove a container of ours with its volumes. One that is gone is success.

    Raises:
        ConnectError: sandboxio did not make it.
    """
    try:
        found = await _inspect(engine, sandbox_id)
    except SandboxGone:
        return
    await Container(engine, str(found["Id"])).remove()


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
        found = await _list(engine, label)
        for row in found:
            await Container(engine, str(row["Id"])).remove()
        if removed and not found:
            break
        removed = removed or bool(found)
        await anyio.sleep(_SETTLE_PAUSE)
    for _ in range(_SETTLE_TRIES):
        if not await _remove_volumes(engine, label):
            break
        await anyio.sleep(_SETTLE_PAUSE)
    return removed


async def _remove_volumes(engine: Engine, label: str) -> int:
    """Remove volumes, and return how many there were."""
    answer = await engine.get("/volumes", filters=json.dumps({"label": [label]}))
    names = [str(volume["Name"]) for volume in answer.get("Volumes") or ()]
    for name in names:
        try:
            await engine.request("DELETE", f"/volumes/{name}")
        except EngineError as exc:
            if exc.status not in (_NOT_FOUND, _IN_USE):
                raise
    return len(names)


async def _inspect(engine: Engine, sandbox_id: str) -> dict[str, Any]:
    if not sandbox_id or not sandbox_id.isascii() or not sandbox_id.isalnum():
        raise SandboxGone(f"{sandbox_id[:80]!r} is not the id of a container")
    try:
        found: dict[str, Any] = await engine.get(f"/containers/{sandbox_id}/json")
    except EngineError as exc:
        if exc.status == _NOT_FOUND:
            raise SandboxGone(f"there is no container {sandbox_id[:12]}") from exc
        raise
    labels: dict[str, str] = found["Config"].get("Labels") or {}
    if labels.get(LABEL_MANAGED) != "true":
        raise ConnectError(
            f"the container {sandbox_id[:12]} was not made by sandboxio, so it is left alone",
            hint="`sandboxio reap` lists the ones that were",
        )
    return found


async def _list(engine: Engine, label: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await engine.get(
        "/containers/json", all="1", filters=json.dumps({"label": [label]})
    )
    return found


def _managed(row: Mapping[str, Any], backend: str) -> ManagedSandbox:
    labels: dict[str, str] = row.get("Labels") or {}
    created = datetime.fromtimestamp(int(row["Created"]), UTC)
    lifetime = labels.get(LABEL_LIFETIME)
    return ManagedSandbox(
        id=str(row["Id"]),
        backend=backend,
        created_at=created,
        expires_at=created + timedelta(seconds=float(lifetime)) if lifetime else None,
        metadata=_metadata(labels),
        state=str(row.get("State", "unknown")),
    )


def _metadata(labels: Mapping[str, str]) -> dict[str, str]:
    """The caller's labels among the engine's, where those of the image are as well."""
    try:
        names = json.loads(labels.get(LABEL_METADATA, "[]"))
    except ValueError:
        return {}
    return {name: labels[name] for name in names if isinstance(name, str) and name in labels}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and int(text) else None
