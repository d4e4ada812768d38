"""What a sandbox's labels say. Whoever reaches the engine can write them, so none is taken at its word."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

__all__ = [
    "LABEL_DISK",
    "LABEL_LIFETIME",
    "LABEL_LOOSENED",
    "LABEL_MEMORY",
    "LABEL_METADATA",
    "LABEL_PROCESS",
    "expiry",
    "lifetime",
    "metadata",
    "whole",
]

LABEL_PROCESS: Final = "sandboxio.process"
LABEL_LIFETIME: Final = "sandboxio.lifetime"
LABEL_METADATA: Final = "sandboxio.metadata"
LABEL_MEMORY: Final = "sandboxio.memory_mb"
LABEL_DISK: Final = "sandboxio.disk_mb"
LABEL_LOOSENED: Final = "sandboxio.loosened"

_DIGITS: Final = 18


def lifetime(labels: Mapping[str, str]) -> float | None:
    """The lifetime in seconds, or `None` when none can be read."""
    try:
        seconds = float(labels.get(LABEL_LIFETIME, ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def expiry(labels: Mapping[str, str], created: datetime | None) -> datetime | None:
    """When the lifetime of what was created then ends, or `None` when that cannot be told."""
    seconds = lifetime(labels)
    if seconds is None or created is None:
        return None
    try:
        return created + timedelta(seconds=seconds)
    except OverflowError:
        return None


def metadata(labels: Mapping[str, str]) -> dict[str, str]:
    """The caller's labels among the engine's, where those of the image are as well."""
    try:
        names: Any = json.loads(labels.get(LABEL_METADATA, "[]"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(names, list):
        return {}
    listed = cast("list[object]", names)
    return {name: labels[name] for name in listed if isinstance(name, str) and name in labels}


def whole(text: str | None) -> int | None:
    """A positive whole number, or `None` for anything else."""
    if not text or len(text) > _DIGITS or not text.isascii() or not text.isdecimal():
        return None
    return int(text) or None
