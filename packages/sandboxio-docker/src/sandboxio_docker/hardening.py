"""From a request to the engine's description of a container: everything that confines it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sandboxio.adapter.provision import CreateRequest
from sandboxio_docker.budget import Budget
from sandboxio_docker.config import DockerConfig
from sandboxio_docker.container import SHELL
from sandboxio_docker.environment import stored_form
from sandboxio_docker.labels import (
    LABEL_DISK,
    LABEL_LIFETIME,
    LABEL_LOOSENED,
    LABEL_MEMORY,
    LABEL_METADATA,
    LABEL_PROCESS,
)
from sandboxio_docker.user import User

__all__ = [
    "HOME",
    "Plan",
    "container_body",
]

HOME: Final = "/work"

_BYTES_PER_INODE: Final = 4096
_FEWEST_INODES: Final = 1024

# The first process is the lifetime itself: nothing inside can stop or kill it. Ignoring SIGCHLD
# lets the kernel collect orphans that end; a shell resets that on exec, `env` of coreutils does not.
SLEEPER: Final = (
    'env --ignore-signal=CHLD true 2>/dev/null && exec env --ignore-signal=CHLD sleep "$1"; exec sleep "$1"'
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What preparing found out about a container to be.

    Attributes:
        image: The image's id.
        template: Its name, for messages.
        user: Who runs in it.
        uid_offset: What a user-namespace-remapped engine adds to a uid; `None` when it is remapped
            in a way that cannot be told.
        runtime: The OCI runtime's name.
        budget: The caps.
        volumes: Paths at which the image declares volumes, beside the usual places.
        process: The label of this process, for its reaper.
    """

    image: str
    template: str
    user: User
    uid_offset: int | None
    runtime: str
    budget: Budget
    volumes: tuple[str, ...] = ()
    process: str = field(default="", repr=False)


def container_body(
    request: CreateRequest, config: DockerConfig, plan: Plan, *, shell: bool
) -> dict[str, Any]:
    """The body of the create request.

    Args:
        request: What was asked for.
        config: The backend's configuration.
        plan: What preparing found out.
        shell: Whether the image is believed to have a shell.
    """
    seconds = str(math.ceil(request.timeout))
    labels = _labels(request, config, plan)
    return {
        "Image": plan.image,
        "Entrypoint": [SHELL, "-c", SLEEPER, "sh", seconds] if shell else ["sleep", seconds],
        "Cmd": [],
        "User": str(plan.user),
        "WorkingDir": HOME,
        "Env": [f"HOME={HOME}", *stored_form(request.env)],
        "Labels": labels,
        "Healthcheck": {"Test": ["NONE"]},
        "NetworkDisabled": request.network.egress != "allow",
        "StopTimeout": 0,
        "HostConfig": _host_config(request, config, plan, labels),
    }


def _labels(request: CreateRequest, config: DockerConfig, plan: Plan) -> dict[str, str]:
    limits = plan.budget.limits
    return {
        **request.labels,
        LABEL_PROCESS: plan.process,
        LABEL_LIFETIME: f"{request.timeout:g}",
        LABEL_METADATA: json.dumps(sorted(request.metadata)),
        LABEL_MEMORY: str(limits.memory_mb),
        LABEL_DISK: str(limits.disk_mb),
        LABEL_LOOSENED: " ".join(config.loosened),
    }


def _host_config(
    request: CreateRequest, config: DockerConfig, plan: Plan, labels: Mapping[str, str]
) -> dict[str, Any]:
    budget = plan.budget
    security = ["no-new-privileges"] if config.no_new_privileges else []
    if config.seccomp is not None:
        security.append(f"seccomp={config.seccomp}")
    assert budget.limits.cpu is not None
    return {
        "AutoRemove": True,
        "NetworkMode": "bridge" if request.network.egress == "allow" else "none",
        "CapDrop": ["ALL"],
        "CapAdd": list(config.capabilities),
        "SecurityOpt": security,
        "Privileged": False,
        "ReadonlyRootfs": config.read_only_root,
        "PidsLimit": config.pids_limit,
        "Memory": budget.memory_bytes,
        "MemorySwap": budget.memory_bytes,
        "NanoCpus": round(budget.limits.cpu * 1e9),
        "ShmSize": budget.small_bytes,
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "Runtime": plan.runtime,
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "locks", "Soft": -1, "Hard": -1},  # it carries the numbers of executions
        ],
        "Mounts": [
            _volume(HOME, budget.work_bytes, "0700", plan, labels, copy=False),
            _volume("/tmp", budget.small_bytes, "1777", plan, labels, copy=False),  # noqa: S108 -- inside the sandbox
            *(_volume(path, budget.small_bytes, "0755", plan, labels, copy=True) for path in plan.volumes),
        ],
    }


def _volume(
    target: str, size: int, mode: str, plan: Plan, labels: Mapping[str, str], *, copy: bool
) -> dict[str, Any]:
    """An anonymous volume in memory: its size is enforced, and it goes with its container.

    Its labels are the sandbox's, by which it is found if the container is removed without it.
    """
    inodes = max(size // _BYTES_PER_INODE, _FEWEST_INODES)
    options = [f"size={size}", f"nr_inodes={inodes}", "nosuid", "nodev"]
    if plan.uid_offset is None:
        options.append("mode=1777")
    else:
        uid, gid = plan.user.uid + plan.uid_offset, plan.user.gid + plan.uid_offset
        options += [f"mode={mode}", f"uid={uid}", f"gid={gid}"]
    return {
        "Type": "volume",
        "Target": target,
        "VolumeOptions": {
            "NoCopy": not copy,
            "Labels": dict(labels),
            "DriverConfig": {
                "Name": "local",
                "Options": {"type": "tmpfs", "device": "tmpfs", "o": ",".join(options)},
            },
        },
    }
