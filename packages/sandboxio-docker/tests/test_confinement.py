"""What a container cannot do, tried in the container."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from docker_suite.conditions import until
from docker_suite.factory import SandboxFactory
from docker_suite.images import SHELLLESS_IMAGE, ImageBuilder

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import (
    CapabilityNotSupported,
    ConfigurationError,
    CreationError,
    FileSystemError,
    PathNotFound,
    ResourceLimitExceeded,
)
from sandboxio.models import Capability, IsolationTier, Resources
from sandboxio_docker import DockerBackend, DockerConfig

pytestmark = pytest.mark.docker

HOG = "b = bytearray(600 * 2**20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint(len(b))"


async def test_nobody_is_root_and_only_sized_folders_are_writable(sandbox: Sandbox) -> None:
    assert (await sandbox.run("id -u; id -g")).stdout.split() == ["65532", "65532"]
    places = await sandbox.run("find / -xdev -writable -type d 2>/dev/null")
    assert set(places.stdout.split()) == {"/work", "/tmp"}
    assert (await sandbox.run("echo $HOME; pwd")).stdout.split() == ["/work", "/work"]
    for path in ("/work", "/tmp", "/dev/shm"):
        assert (await sandbox.run(["touch", f"{path}/x"])).ok


async def test_no_capability_and_no_new_privileges(sandbox: Sandbox) -> None:
    status = (await sandbox.run(["cat", "/proc/self/status"])).stdout
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert {int(fields[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"


async def test_a_full_disk_is_no_space_left_and_no_dead_sandbox(create: SandboxFactory) -> None:
    sandbox = await create(resources=Resources(memory_mb=128))
    for path in ("/work/x", "/tmp/x", "/dev/shm/x"):
        result = await sandbox.run(["dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=600"])
        assert "No space left on device" in result.stderr
    with pytest.raises(FileSystemError, match="disk_mb=64") as caught:
        await sandbox.files.write("more", bytes(100_000))
    assert "disk_mb" in caught.value.hint
    assert not await sandbox.files.exists("more")
    with pytest.raises(ResourceLimitExceeded, match="memory_mb=128"):
        await sandbox.run(["python3", "-c", HOG])
    assert (await sandbox.run(["echo", "alive"])).stdout == "alive\n"


async def test_disk_that_was_asked_for_is_there_beside_the_memory(create: SandboxFactory) -> None:
    sandbox = await create(resources=Resources(memory_mb=64, disk_mb=512))
    result = await sandbox.run("dd if=/dev/zero of=/work/x bs=1M count=350 2>&1; ls -l /work/x")
    assert str(350 * 2**20) in result.stdout
    assert not result.oom_killed


async def test_a_hog_behind_a_shell_is_told_and_an_innocent_one_goes_on(create: SandboxFactory) -> None:
    sandbox = await create(resources=Resources(memory_mb=128))
    results: dict[str, Any] = {}

    async def innocent() -> None:
        results["innocent"] = await sandbox.run(
            "touch begun; until [ -e over ]; do sleep 0.1; done; echo done"
        )

    async with anyio.create_task_group() as group:
        group.start_soon(innocent)
        await until(lambda: sandbox.files.exists("begun"))
        results["hog"] = await sandbox.run(["sh", "-c", f"python3 -c '{HOG}'; echo rc $?; exit 0"])
        await sandbox.files.write("over", b"")
    assert results["hog"].ok
    assert results["hog"].oom_killed
    assert (results["innocent"].stdout, results["innocent"].oom_killed) == ("done\n", True)
    assert not (await sandbox.run(["true"])).oom_killed


async def test_an_end_by_sigkill_alone_is_no_want_of_memory(create: SandboxFactory) -> None:
    sandbox = await create(resources=Resources(memory_mb=128))
    with pytest.raises(ResourceLimitExceeded):
        await sandbox.run(["python3", "-c", HOG])
    result = await sandbox.run("kill -9 $$")
    assert (result.exit_code, result.oom_killed) == (137, False)


async def test_output_of_the_first_process_is_kept_nowhere(sandbox: Sandbox) -> None:
    await sandbox.run("head -c 1000000 /dev/zero >/proc/1/fd/1")
    assert sandbox.native.attrs["HostConfig"]["LogConfig"]["Type"] == "none"
    assert sandbox.native.attrs["LogPath"] == ""


async def test_orphans_that_end_are_collected(sandbox: Sandbox) -> None:
    orphans = await sandbox.run("for i in 1 2 3 4 5; do (sleep 0.1 & echo /proc/$!); done")
    folders = orphans.stdout.split()
    assert len(folders) == 5

    async def collected() -> bool:
        return not (await sandbox.run(["ls", "-d", *folders])).stdout

    await until(collected)


async def test_the_first_process_cannot_be_stopped_or_killed_from_inside(sandbox: Sandbox) -> None:
    await sandbox.run("kill -STOP 1; kill -KILL 1; kill -TERM 1")
    state = (await sandbox.run("cat /proc/1/stat")).stdout.rpartition(")")[2].split()[0]
    assert state == "S"


@pytest.mark.parametrize(
    ("user", "expected"), [("root", 65532), ("0:0", 65532), ("4321", 4321), ("nobody", 65534)]
)
async def test_the_images_user_is_a_number_and_never_root(
    create: SandboxFactory, build: ImageBuilder, user: str, expected: int
) -> None:
    sandbox = await create(template=build("user", f"USER {user}"))
    assert (await sandbox.run(["id", "-u"])).stdout.strip() == str(expected)
    await sandbox.files.write("a", b"x")
    assert (await sandbox.run("stat -c %u a")).stdout.strip() == str(expected)


async def test_a_user_that_is_not_in_the_image_is_an_error_with_the_fix(
    create: SandboxFactory, build: ImageBuilder
) -> None:
    with pytest.raises(CreationError, match="'ghost'") as caught:
        await create(template=build("ghost", "USER ghost"))
    assert "DockerConfig(user=" in caught.value.hint


async def test_volumes_that_an_image_declares_are_capped_too(
    create: SandboxFactory, build: ImageBuilder
) -> None:
    sandbox = await create(template=build("volumes", "VOLUME /data", "VOLUME /var/cache", "USER 65532"))
    mounts = (await sandbox.run(["cat", "/proc/mounts"])).stdout
    for path in ("/data", "/var/cache", "/work", "/tmp"):
        line = next(line for line in mounts.splitlines() if line.split()[1] == path)
        assert line.split()[2] == "tmpfs"
        assert "size=" in line


async def test_what_the_image_holds_in_the_working_folder_does_not_take_it_from_the_user(
    create: SandboxFactory, build: ImageBuilder
) -> None:
    sandbox = await create(template=build("occupied", "WORKDIR /work/sub"))
    assert (await sandbox.run(["touch", "x"])).ok


async def test_an_image_without_a_shell_runs_programs_and_says_what_it_lacks(create: SandboxFactory) -> None:
    sandbox = await create(template=SHELLLESS_IMAGE)
    assert Capability.FILESYSTEM not in sandbox.capabilities
    assert (await sandbox.run(["echo", "hi"])).stdout == "hi\n"
    assert (await sandbox.run(["cat"], stdin=b"abc")).stdout == "abc"
    missing = await sandbox.run(["nosuch"])
    assert (missing.exit_code, missing.stdout) == (127, "")
    assert "not found" in missing.stderr
    unusable = await sandbox.run(["/etc"])
    assert (unusable.exit_code, unusable.stdout) == (126, "")
    with pytest.raises(PathNotFound):
        await sandbox.run(["ls"], cwd="/nowhere")
    with pytest.raises(FileSystemError, match="cannot be entered"):
        await sandbox.run(["ls"], cwd="/etc/hosts")
    with pytest.raises(CapabilityNotSupported, match="no shell"):
        await sandbox.run("echo hi")


async def test_an_argument_that_linux_cannot_pass_is_refused_with_the_way_out(sandbox: Sandbox) -> None:
    with pytest.raises(ConfigurationError, match="131072 bytes") as caught:
        await sandbox.run(["echo", "x" * 131072])
    assert "files.write" in caught.value.hint
    assert (await sandbox.run(["sh", "-c", 'echo "${#1}"', "sh", "x" * 131071])).stdout == "131071\n"
    with pytest.raises(ConfigurationError, match="together"):
        await sandbox.run(["echo", *["x" * 100_000] * 40])


async def test_an_image_that_cannot_be_pulled_names_the_fix(create: SandboxFactory) -> None:
    with pytest.raises(CreationError, match="cannot be pulled") as caught:
        await create(template="127.0.0.1:1/nothing/here:1")
    assert "docker pull 127.0.0.1:1/nothing/here:1" in caught.value.hint
    assert "scripts/docker-image.sh" in caught.value.hint


@pytest.mark.gvisor
async def test_runsc_is_gvisor_and_its_executions_end_alone(create: SandboxFactory) -> None:
    if "runsc" not in await runtimes():
        pytest.skip("the engine has no runtime runsc")
    sandbox = await create(config=DockerConfig(runtime="runsc"))
    assert sandbox.isolation is IsolationTier.GVISOR
    await sandbox.run("sleep 300 >/dev/null 2>&1 &")
    from sandboxio.errors import ExecutionTimeout

    with pytest.raises(ExecutionTimeout):
        await sandbox.run("sleep 301 & setsid sleep 302 & wait", timeout=2)
    left = (await sandbox.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).stdout
    assert "sleep 300" in left
    assert "sleep 301" not in left
    assert "sleep 302" not in left
    await sandbox.files.write("a", b"x")
    assert await sandbox.files.read("a") == b"x"


@pytest.mark.gvisor
async def test_runsc_without_caps_creates_nothing(create: SandboxFactory) -> None:
    if "runsc-uncapped" not in await runtimes():
        pytest.skip("the engine has no runtime runsc-uncapped")
    with pytest.raises(ConfigurationError, match="no cap holds"):
        await create(config=DockerConfig(runtime="runsc-uncapped"))


async def runtimes() -> set[str]:
    from sandboxio_docker.address import resolve_address
    from sandboxio_docker.engine import Engine
    from sandboxio_docker.transport import Transport

    return set((await Engine(Transport(resolve_address())).get("/info"))["Runtimes"])


async def test_the_doctor_shows_what_is_loosened(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {c.status for c in await DockerBackend().diagnose() if c.name != "caps"} == {"ok"}
    monkeypatch.setenv("SBX_DOCKER_REAPER", "0")
    checks = {c.name: c for c in await DockerBackend(DockerConfig(read_only_root=False)).diagnose()}
    assert checks["hardening"].status == "warning"
    assert "read_only_root=False" in checks["hardening"].detail
    assert checks["reaper"].status == "warning"
    assert json.dumps([c.detail for c in checks.values()])
