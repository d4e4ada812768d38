"""The body of the create request: everything that confines a container is in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandboxio.adapter.provision import CreateRequest
from sandboxio.errors import CapabilityNotSupported
from sandboxio.models import Resources
from sandboxio.network import NetworkPolicy
from sandboxio_docker.budget import MIB, plan_budget
from sandboxio_docker.config import DockerConfig
from sandboxio_docker.environment import stored
from sandboxio_docker.hardening import Plan, container_body
from sandboxio_docker.user import User

REQUEST = CreateRequest(
    template=None,
    resources=Resources(),
    network=NetworkPolicy(),
    env={"A": "b"},
    secrets={"TOKEN": "hush"},
    timeout=90.5,
    metadata={"tenant_id": "t"},
    creation_id="c" * 32,
)
PLAN = Plan(
    image="sha256:1",
    template="img",
    user=User(65532, 65532),
    uid_offset=0,
    runtime="runc",
    budget=plan_budget(Resources()),
)


def body(
    request: CreateRequest = REQUEST, config: DockerConfig | None = None, plan: Plan = PLAN
) -> dict[str, Any]:
    return container_body(request, config or DockerConfig(), plan, shell=True)


def mounts(of: dict[str, Any]) -> dict[str, str]:
    found = of["HostConfig"]["Mounts"]
    return {m["Target"]: m["VolumeOptions"]["DriverConfig"]["Options"]["o"] for m in found}


def test_the_defaults_confine() -> None:
    host = body()["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["CapAdd"] == []
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Privileged"] is False
    assert host["ReadonlyRootfs"] is True
    assert host["PidsLimit"] == 256
    assert host["Memory"] == host["MemorySwap"] == 1024 * MIB
    assert host["NanoCpus"] == 10**9
    assert host["LogConfig"]["Type"] == "none"
    assert host["AutoRemove"] is True
    assert "Binds" not in host
    assert body()["User"] == "65532:65532"
    assert body()["Healthcheck"] == {"Test": ["NONE"]}


def test_secrets_are_nowhere_in_it() -> None:
    assert "hush" not in str(body())


def test_the_first_process_gets_no_variable_of_the_caller() -> None:
    request = replace(REQUEST, env={"PATH": "/nowhere", "LD_PRELOAD": "/work/x.so"})
    entries = body(request)["Env"]
    assert not [entry for entry in entries if entry.startswith(("PATH=", "LD_"))]
    assert stored(entries) == request.env


def test_the_lifetime_is_the_first_process() -> None:
    assert body()["Entrypoint"][-1] == "91"
    assert container_body(REQUEST, DockerConfig(), PLAN, shell=False)["Entrypoint"] == ["sleep", "91"]


def test_labels_find_it_again() -> None:
    labels = body()["Labels"]
    assert labels["sandboxio.managed"] == "true"
    assert labels["sandboxio.creation"] == REQUEST.creation_id
    assert labels["tenant_id"] == "t"
    assert labels["sandboxio.lifetime"] == "90.5"


def test_open_egress_gets_a_network() -> None:
    opened = body(replace(REQUEST, network=NetworkPolicy(egress="allow")))
    assert opened["HostConfig"]["NetworkMode"] == "bridge"
    assert opened["NetworkDisabled"] is False


def test_what_is_loosened_is_loosened_and_labelled() -> None:
    config = DockerConfig(
        read_only_root=False, capabilities=("NET_RAW",), no_new_privileges=False, seccomp="{}"
    )
    loosened = body(config=config)
    assert loosened["HostConfig"]["ReadonlyRootfs"] is False
    assert loosened["HostConfig"]["CapDrop"] == ["ALL"]
    assert loosened["HostConfig"]["CapAdd"] == ["NET_RAW"]
    assert loosened["HostConfig"]["SecurityOpt"] == ["seccomp={}"]
    assert "read_only_root=False" in loosened["Labels"]["sandboxio.loosened"]
    assert body()["Labels"]["sandboxio.loosened"] == ""  # an image made from a loosened one brings its own


def test_disk_lies_inside_the_memory_by_default() -> None:
    budget = plan_budget(Resources(memory_mb=1024))
    assert budget.memory_bytes == 1024 * MIB
    assert budget.work_bytes + 2 * budget.small_bytes == 512 * MIB
    assert budget.limits == Resources(cpu=1.0, memory_mb=1024, disk_mb=512)


def test_disk_that_was_asked_for_is_added_to_the_memory() -> None:
    budget = plan_budget(Resources(memory_mb=256, disk_mb=2048))
    assert budget.memory_bytes == (256 + 2048) * MIB
    assert budget.small_bytes == 64 * MIB
    assert budget.work_bytes == (2048 - 128) * MIB


@pytest.mark.parametrize("disk_mb", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("volumes", [0, 1, 5])
def test_the_parts_are_the_whole(disk_mb: int, volumes: int) -> None:
    budget = plan_budget(Resources(disk_mb=disk_mb), volumes)
    assert budget.work_bytes + (2 + volumes) * budget.small_bytes == disk_mb * MIB
    assert budget.small_bytes > 0


def test_too_many_volumes_are_refused() -> None:
    with pytest.raises(CapabilityNotSupported, match="7 volumes"):
        plan_budget(Resources(disk_mb=64), 7)


def test_volumes_of_the_image_are_sized_like_all_others() -> None:
    sized = mounts(body(plan=replace(PLAN, volumes=("/data",), budget=plan_budget(Resources(), 1))))
    assert set(sized) == {"/work", "/tmp", "/data"}
    assert all(options.startswith("size=") and "nodev" in options for options in sized.values())


def test_a_remapped_engine_gets_the_ids_of_the_host() -> None:
    assert "uid=165532,gid=165532" in mounts(body(plan=replace(PLAN, uid_offset=100_000)))["/work"]


def test_a_mapping_that_cannot_be_told_opens_the_folder_to_all_inside() -> None:
    options = mounts(body(plan=replace(PLAN, uid_offset=None)))["/work"]
    assert "mode=1777" in options
    assert "uid=" not in options
