"""How memory and disk are divided: one budget of memory-backed disk, over all writable places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sandboxio.errors import CapabilityNotSupported
from sandboxio.models import Resources

__all__ = ["Budget", "plan_budget"]

MIB: Final = 1024 * 1024
DEFAULT_CPU: Final = 1.0
DEFAULT_MEMORY_MB: Final = 1024

_PAGE: Final = 4096
_SMALL_SHARE: Final = 8
_SMALL_LIMIT: Final = 64 * MIB


@dataclass(frozen=True, slots=True)
class Budget:
    """The caps of a sandbox.

    Attributes:
        limits: What was asked for, with the defaults filled in.
        memory_bytes: The cap on memory and swap together.
        work_bytes: The size of the working folder.
        small_bytes: The size of each of `/tmp`, `/dev/shm` and the image's own volumes.
    """

    limits: Resources
    memory_bytes: int
    work_bytes: int
    small_bytes: int


def plan_budget(resources: Resources, volumes: int = 0) -> Budget:
    """Divide what was asked for.

    All disk is memory. By default it is half of `memory_mb` and lies inside that limit; a
    `disk_mb` that was asked for is added to it.

    Args:
        resources: The caps, `None` meaning the default.
        volumes: How many volumes the image declares beside the usual places.

    Raises:
        CapabilityNotSupported: The image declares more volumes than there is room for.
    """
    memory_mb = resources.memory_mb or DEFAULT_MEMORY_MB
    disk_mb = resources.disk_mb or max(memory_mb // 2, 1)
    added = resources.disk_mb or 0
    small = min(disk_mb * MIB // _SMALL_SHARE, _SMALL_LIMIT) // _PAGE * _PAGE
    work = disk_mb * MIB - small * (2 + volumes)
    if work < small:
        raise CapabilityNotSupported(
            f"the image declares {volumes} volumes, more than its disk of {disk_mb} MiB can be divided into",
            hint="raise Resources(disk_mb=…), or use an image that declares fewer volumes",
        )
    return Budget(
        Resources(cpu=resources.cpu or DEFAULT_CPU, memory_mb=memory_mb, disk_mb=disk_mb),
        memory_bytes=(memory_mb + added) * MIB,
        work_bytes=work,
        small_bytes=small,
    )
