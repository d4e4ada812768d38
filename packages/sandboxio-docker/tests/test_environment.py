"""The caller's variables reach commands, and nothing of the adapter's own."""

from __future__ import annotations

import pytest
from docker_suite.factory import SandboxFactory
from docker_suite.images import BUSYBOX_IMAGE, PYTHON_IMAGE, SHELLLESS_IMAGE

from sandboxio.errors import ExecutionTimeout
from sandboxio_docker import DockerBackend
from sandboxio_docker.environment import stored, stored_form

AWKWARD = {
    "PATH": "/nowhere",
    "A": "1 2\n'3\" $x",
    "EMPTY": "",
    "SHELLOPTS": "noexec",
    "OPTIND": "x",
    "UID": "7",
}
DANGEROUS = ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "SHELLOPTS", "IFS", "PS4", "CDPATH"]


def test_what_is_stored_is_found_again() -> None:
    assert stored(stored_form(AWKWARD)) == AWKWARD


def test_what_an_image_made_from_a_sandbox_brings_is_not_found() -> None:
    entries = [*stored_form({"A": "1", "B": "2", "C": "3"}), *stored_form({"D": "4"})]
    assert stored(entries) == {"D": "4"}


@pytest.mark.parametrize("count", ["", "x", "-1", "9" * 5000])
def test_a_number_that_is_none_stores_nothing(count: str) -> None:
    assert stored([f"SANDBOXIO_ENV={count}", "SANDBOXIO_ENV_0=A=b", "odd", 5]) == {}


@pytest.mark.docker
@pytest.mark.parametrize("template", [PYTHON_IMAGE, BUSYBOX_IMAGE])
async def test_variables_of_the_sandbox_reach_its_commands_unchanged(
    create: SandboxFactory, template: str
) -> None:
    sandbox = await create(template=template, env=AWKWARD)
    connected = await DockerBackend().connect(sandbox.id)
    for handle in (sandbox, connected):
        shown = await handle.run('printf "%s|" "$PATH" "$A" "$EMPTY" "$B"', env={"B": "own"})
        assert shown.stdout == f"/nowhere|{AWKWARD['A']}||own|"
        everything = await handle.run(["/bin/sh", "-c", "export"])
        assert "SANDBOXIO" not in everything.stdout
        assert (await handle.run(["python3"])).exit_code == 127
        await handle.files.write("kept", "here")
        assert await handle.files.read("kept") == b"here"


@pytest.mark.docker
async def test_without_a_shell_they_reach_commands_too(create: SandboxFactory) -> None:
    sandbox = await create(template=SHELLLESS_IMAGE, env={"A": "b", "PATH": "/nowhere"})
    assert (await sandbox.run(["sleep", "0"])).exit_code == 127
    listing = await sandbox.run(["sleep", "0"], env={"PATH": "/bin:/usr/bin"})
    assert listing.exit_code == 0


@pytest.mark.docker
async def test_a_variable_that_keeps_every_program_from_running_is_the_commands_alone(
    create: SandboxFactory,
) -> None:
    """With this one the dynamic loader lists a program's libraries and ends it."""
    sandbox = await create(env={"LD_TRACE_LOADED_OBJECTS": "1"})
    await sandbox.files.write("file", "x")
    assert await sandbox.files.read("file") == b"x"
    traced = await sandbox.run(["python3", "-c", "print('ran')"])
    assert traced.exit_code == 0
    assert "libc" in traced.stdout
    assert "ran" not in traced.stdout


@pytest.mark.docker
@pytest.mark.parametrize("name", DANGEROUS)
async def test_no_variable_takes_over_what_is_the_adapters_own(create: SandboxFactory, name: str) -> None:
    """What the variable points at is made by the code in the sandbox, and breaks whatever trusts it."""
    sandbox = await create(env={name: "/work/trap"})
    await sandbox.files.mkdir("trap")
    for tool in ("nice", "cat", "mv", "stat", "rm"):
        await sandbox.files.write(f"trap/{tool}", "#!/bin/sh\nexit 99\n")
    await sandbox.files.write("trap/libc.so.6", "no library")
    await sandbox.run(["/bin/chmod", "-R", "755", "trap"], env={name: ""})
    await sandbox.files.write("file", "x")
    assert await sandbox.files.read("file") == b"x"
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["/bin/sleep", "300"], env={name: ""}, timeout=0.5)
    await sandbox.run(["/bin/true"])
    assert (await sandbox.run("echo alive", env={name: ""})).stdout == "alive\n"
