"""The volumes of a sandbox that outlived its container.

The engine ends anonymous volumes with their container, unless somebody removes it by
`docker rm -f` behind our back. It refers to the volumes of a container from before that exists, so
those of a creation in flight are neither dangling nor removable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sandboxio.adapter.provision import LABEL_CREATION, LABEL_MANAGED
from sandboxio_docker.answer import Answer
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError
from sandboxio_docker.ownership import creation_of
from sandboxio_docker.runtime import parse_time

__all__ = ["Leftover", "list_leftovers", "remove_volumes"]

_NOT_FOUND: Final = 404
_IN_USE: Final = 409


@dataclass(frozen=True, slots=True)
class Leftover:
    """A sandbox of which only volumes are left.

    Attributes:
        creation_id: Its creation id.
        created_at: When it was created, if the engine tells.
        labels: Its labels.
    """

    creation_id: str
    created_at: datetime | None
    labels: Mapping[str, str]


async def list_leftovers(engine: Engine) -> tuple[Leftover, ...]:
    """The sandboxes whose volumes no container uses."""
    found: dict[str, Leftover] = {}
    for volume in await _volumes(engine, f"{LABEL_MANAGED}=true", dangling=True):
        labels = volume.texts("Labels")
        creation_id = creation_of(labels)
        if creation_id is not None:
            told = volume.get("CreatedAt")
            created = parse_time(told) if isinstance(told, str) and told else None
            found[creation_id] = Leftover(creation_id, created, labels)
    return tuple(found.values())


async def remove_volumes(engine: Engine, creation_id: str) -> int:
    """Remove the volumes of a creation that no container uses, and return how many there were."""
    volumes = await _volumes(engine, f"{LABEL_CREATION}={creation_id}")
    for volume in volumes:
        try:
            await engine.request("DELETE", f"/volumes/{volume['Name']}")
        except EngineError as exc:
            if exc.status not in (_NOT_FOUND, _IN_USE):
                raise
    return len(volumes)


async def _volumes(engine: Engine, label: str, *, dangling: bool = False) -> Sequence[Answer]:
    filters: dict[str, Any] = {"label": [label]}
    if dangling:
        filters["dangling"] = ["true"]
    return (await engine.get("/volumes", filters=json.dumps(filters))).objects("Volumes")
