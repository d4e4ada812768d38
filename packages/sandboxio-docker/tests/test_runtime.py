"""What the engine says about itself, and the tier that follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandboxio.errors import ConfigurationError, CreationError
from sandboxio.models import IsolationTier
from sandboxio_docker.answer import Answer, answered_object
from sandboxio_docker.runtime import EngineFacts, parse_time, read_facts

INFO: dict[str, Any] = {
    "ServerVersion": "20.10",
    "SystemTime": "2026-11-30T11:00:00.123456789+01:00",
    "DefaultRuntime": "runc",
    "Runtimes": {"runc": {"path": "runc"}},
    "SecurityOptions": ["name=seccomp,profile=default"],
    "DockerRootDir": "/var/lib/docker",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
}


class Answering:
    """An engine with a prepared self-description."""

    def __init__(self, **changes: Any) -> None:
        self.info = {**INFO, **changes}

    async def get(self, path: str) -> Answer:
        assert path == "/info"
        return answered_object(json.dumps(self.info).encode())


async def facts(**changes: Any) -> EngineFacts:
    return await read_facts(Answering(**changes))  # type: ignore[arg-type]


def runtime(**description: Any) -> dict[str, Any]:
    return {"Runtimes": {"runc": {"path": "runc"}, "given": description}}


async def test_the_default_runtime_is_a_container() -> None:
    assert (await facts()).runtime_tier(None) == ("runc", IsolationTier.CONTAINER)


@pytest.mark.parametrize(
    "description",
    [
        {"path": "/usr/bin/runsc"},
        {"path": "runsc", "runtimeArgs": ["--platform=systrap", "--network=none"]},
        {"path": "runsc", "runtimeArgs": ["--ignore-cgroups=false"]},
        {"runtimeType": "io.containerd.runsc.v1"},
    ],
)
async def test_runsc_is_gvisor_whatever_it_is_called(description: dict[str, Any]) -> None:
    assert (await facts(**runtime(**description))).runtime_tier("given") == ("given", IsolationTier.GVISOR)


@pytest.mark.parametrize("path", ["/opt/runsc-wrapper", "/opt/runsc/runc", "crun"])
async def test_a_name_alone_proves_nothing(path: str) -> None:
    known = {"Runtimes": {"runsc": {"path": path}}}
    assert (await facts(**known)).runtime_tier("runsc")[1] is IsolationTier.CONTAINER


@pytest.mark.parametrize("argument", ["--ignore-cgroups", "-ignore-cgroups", "--ignore-cgroups=true"])
async def test_runsc_without_caps_is_refused(argument: str) -> None:
    known = await facts(**runtime(path="runsc", runtimeArgs=["--debug", argument]))
    with pytest.raises(ConfigurationError, match="no cap holds"):
        known.runtime_tier("given")


async def test_runsc_whose_flags_are_out_of_sight_is_refused() -> None:
    known = await facts(**runtime(runtimeType="io.containerd.runsc.v1", options={"ConfigPath": "/x"}))
    with pytest.raises(ConfigurationError, match="cannot be seen"):
        known.runtime_tier("given")


async def test_a_runtime_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no runtime 'kata'"):
        (await facts()).runtime_tier("kata")


@pytest.mark.parametrize("missing", ["MemoryLimit", "PidsLimit", "CpuCfsQuota"])
async def test_an_engine_that_would_ignore_a_cap_is_refused(missing: str) -> None:
    with pytest.raises(CreationError, match="cannot cap"):
        (await facts(**{missing: False})).require_caps()
    (await facts()).require_caps()


async def test_an_unmapped_engine_adds_nothing_to_ids() -> None:
    assert (await facts()).uid_offset == 0


async def test_a_remapped_engine_tells_its_offset_by_its_folder() -> None:
    known = await facts(SecurityOptions=["name=userns"], DockerRootDir="/data/100000.100000")
    assert (known.remapped, known.uid_offset) == (True, 100_000)


async def test_a_remapping_that_cannot_be_read_is_unknown() -> None:
    known = await facts(SecurityOptions=["name=userns"], DockerRootDir="/data")
    assert (known.remapped, known.uid_offset) == (True, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T11:00:00.123456789Z", "2026-11-30T11:00:00.123456+00:00"),
        ("2026-11-30T11:00:00.5+02:00", "2026-11-30T11:00:00.500000+02:00"),
        ("2026-11-30T11:00:00Z", "2026-11-30T11:00:00+00:00"),
    ],
)
def test_times_of_the_engine_are_read(text: str, expected: str) -> None:
    assert parse_time(text).isoformat() == expected


@pytest.mark.parametrize("options", [[], ["name=apparmor"], ["name=seccomp,profile=unconfined"]])
async def test_an_engine_that_confines_no_system_calls_creates_nothing(options: list[str]) -> None:
    with pytest.raises(CreationError, match="seccomp"):
        (await facts(SecurityOptions=options)).require_caps()
