"""Who runs in a container: always numbers, and never root unless the configuration names it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from sandboxio.adapter.provision import CreateRequest
from sandboxio.errors import CreationError
from sandboxio.release import bounded, uninterrupted, warn_orphaned
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError
from sandboxio_docker.ownership import look_name

__all__ = ["NOBODY_IN_PARTICULAR", "User", "resolve_user"]

_PEEK_SECONDS: Final = 30.0
_FILE_LIMIT: Final = 4 * 1024 * 1024
_HIGHEST: Final = 2**31 - 1
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class User:
    """A user and a group, as numbers."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


NOBODY_IN_PARTICULAR: Final = User(65532, 65532)
"""Who runs where the image says root or nothing."""


async def resolve_user(
    engine: Engine,
    request: CreateRequest,
    image: str,
    declared: str,
    configured: str | None,
    labels: Mapping[str, str],
) -> User:
    """The user of a container.

    Args:
        engine: The engine.
        request: For whom a container is made to look into the image.
        image: The image's id.
        declared: The image's `USER`.
        configured: `uid` or `uid:gid` of the configuration, which goes before.
        labels: What that container carries beside the request's labels, so that the reaper finds it.

    Raises:
        CreationError: The image names a user that it does not contain.
    """
    if configured is not None:
        uid, _, gid = configured.partition(":")
        return User(int(uid), int(gid or uid))
    name, _, group = declared.partition(":")
    if not name or name == "root":
        return NOBODY_IN_PARTICULAR
    if name.isdecimal() and group.isdecimal():
        found = User(int(name), int(group))
    else:
        found = _look_up(name, group, await _read_accounts(engine, request, image, labels), image)
    if max(found.uid, found.gid) > _HIGHEST:
        raise CreationError(f"the image's user {declared[:80]!r} is out of range")
    return NOBODY_IN_PARTICULAR if found.uid == 0 else found


def _look_up(name: str, group: str, accounts: dict[str, str], image: str) -> User:
    rows = [line.split(":") for line in accounts.get("passwd", "").splitlines()]
    row = next((r for r in rows if len(r) > 3 and name in (r[0], r[2]) and r[2].isdecimal()), None)
    if row is None and not name.isdecimal():
        raise CreationError(
            f"the image {image[:19]} runs as the user {name[:40]!r}, who is not in its /etc/passwd",
            hint='rebuild the image with a numeric USER, or set DockerConfig(user="1000")',
        )
    uid = int(row[2]) if row else int(name)
    if not group:
        return User(uid, int(row[3]) if row and row[3].isdecimal() else uid)
    if group.isdecimal():
        return User(uid, int(group))
    groups = [line.split(":") for line in accounts.get("group", "").splitlines()]
    found = next((g[2] for g in groups if len(g) > 2 and g[0] == group and g[2].isdecimal()), None)
    if found is None:
        raise CreationError(
            f"the image {image[:19]} runs in the group {group[:40]!r}, which is not in its /etc/group",
            hint='rebuild the image with a numeric USER, or set DockerConfig(user="1000:1000")',
        )
    return User(uid, int(found))


async def _read_accounts(
    engine: Engine, request: CreateRequest, image: str, labels: Mapping[str, str]
) -> dict[str, str]:
    """Read two files out of a container that is never started."""
    name = look_name(request.creation_id)
    body = {
        "Image": image,
        "Entrypoint": ["/"],
        "Labels": {**request.labels, **labels},
        "NetworkDisabled": True,
    }
    accounts: dict[str, str] = {}

    async def look() -> None:
        try:
            with anyio.fail_after(_PEEK_SECONDS):
                await engine.request("POST", "/containers/create", query={"name": name}, body=body)
                for file in ("passwd", "group"):
                    accounts[file] = await _read_file(engine, name, f"/etc/{file}")
        finally:
            await _remove_quietly(engine, name)

    # A create request that is cancelled may still be carried out, so it is not.
    await uninterrupted(look)
    return accounts


async def _remove_quietly(engine: Engine, name: str) -> None:
    """A removal that fails is told, and replaces no error."""

    async def remove() -> None:
        try:
            await engine.request("DELETE", f"/containers/{name}", query={"force": "1", "v": "1"})
        except EngineError as exc:
            if exc.status != _NOT_FOUND:
                raise

    try:
        removed = await bounded(remove)
    except Exception:
        removed = False
    if not removed:
        warn_orphaned(name, "docker", "looking into its image was interrupted")


async def _read_file(engine: Engine, container: str, path: str) -> str:
    archive = bytearray()
    try:
        async with engine.download(f"/containers/{container}/archive", path=path) as transfer:
            async for piece in transfer:
                archive += piece
                if len(archive) > _FILE_LIMIT:
                    raise CreationError(f"the image's {path} is larger than {_FILE_LIMIT} bytes")
    except EngineError as exc:
        if exc.status == 404:
            return ""
        raise
    with tarfile.open(fileobj=io.BytesIO(bytes(archive))) as tar:
        member = next((m for m in tar if m.isreg()), None)
        content = tar.extractfile(member) if member else None
        return content.read().decode("utf-8", "replace") if content else ""
