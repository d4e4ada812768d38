"""Which containers and volumes are sandboxio's own.

Labels alone do not tell: `docker commit` copies them into an image, and whatever a user makes of
that image carries them too. A container's name is copied by nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sandboxio.adapter.provision import LABEL_CREATION, LABEL_MANAGED

__all__ = ["container_name", "creation_of", "is_own_container", "look_name"]

_CREATION_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


def container_name(creation_id: str) -> str:
    """The name of a sandbox's container."""
    return f"sandboxio-{creation_id[:16]}"


def look_name(creation_id: str) -> str:
    """The name of the container that is made to look into an image, and never started."""
    return f"sandboxio-look-{creation_id}"


def creation_of(labels: Mapping[str, str]) -> str | None:
    """The creation id in the labels of something that says it is sandboxio's, or `None`."""
    creation_id = labels.get(LABEL_CREATION, "")
    if labels.get(LABEL_MANAGED) != "true" or not _CREATION_ID.fullmatch(creation_id):
        return None
    return creation_id


def is_own_container(name: str, labels: Mapping[str, str]) -> bool:
    """Whether sandboxio made the container of this name, with or without the engine's leading slash."""
    creation_id = creation_of(labels)
    return creation_id is not None and name.removeprefix("/") in (
        container_name(creation_id),
        look_name(creation_id),
    )
