"""What code writes into the start files of a shell changes nothing of later executions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from adapter_suite import create, require_fine
from e2b_server.server import E2BServer

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ExecutionTimeout
from sandboxio_e2b import E2BBackend

pytestmark = [pytest.mark.e2b, pytest.mark.docker, pytest.mark.anyio]

START_FILES = (".bash_profile", ".bash_login", ".profile", ".bashrc")
TREE = "setsid sleep 300 & sleep 300"

PROFILES = {
    "a daemon": "setsid sleep 300 >/dev/null 2>&1 </dev/null &\n",
    "an early end": "exit 0\n",
    "a closed output": "exec >/dev/null 2>&1\n",
    "functions": "".join(
        f"{name}() {{ :; }}; export -f {name}\n"
        for name in ("ulimit", "printf", "exec", "exit", "kill", "set", "type", "unset", "export", "read")
    ),
    "options": "set -eu -o noglob; shopt -s extdebug; trap 'kill -9 $$' EXIT DEBUG\n",
    "output of its own": "printf 'sandboxio-facts\\n/evil\\nunnumbered\\n0 0\\n/evil\\n'\n",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox(e2b_server: E2BServer) -> AsyncIterator[Sandbox]:
    async with await create() as sandbox:
        yield sandbox


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_hostile_profile_is_not_read(e2b_server: E2BServer, sandbox: Sandbox, profile: str) -> None:
    home = (await sandbox.run("echo $HOME")).stdout.strip()
    for name in START_FILES:
        await sandbox.files.write(f"{home}/{name}", PROFILES[profile])
    with anyio.fail_after(30):
        async with await E2BBackend().connect(sandbox.id) as connected:
            for handle in (sandbox, connected):
                result = await handle.run("echo out; echo err >&2; exit 7")
                assert (result.exit_code, result.stdout, result.stderr) == (7, "out\n", "err\n")
                assert (await handle.run("echo $HOME; pwd")).stdout == f"{home}\n{home}\n"
                assert (await handle.run(["no-such-program"])).exit_code == 127
                with pytest.raises(ExecutionTimeout):
                    await handle.run(TREE, timeout=0.7)
                with pytest.raises(ExecutionTimeout):
                    await handle.run_code(f"import os, time; os.system({TREE!r})", timeout=1.5)
                assert (await handle.run_code("print(6 * 7)")).stdout == "42\n"
                await require_fine(e2b_server, handle)


async def test_what_the_profile_would_set_is_not_there_for_tools(sandbox: Sandbox) -> None:
    home = (await sandbox.run("echo $HOME")).stdout.strip()
    await sandbox.files.write(f"{home}/.bash_profile", "export PATH=/nowhere\nexit 1\n")
    await sandbox.files.mkdir("folder")
    await sandbox.files.write("folder/file", b"content")
    assert await sandbox.files.read("folder/file") == b"content"


@pytest.mark.parametrize("text", ["exit 0\n", "setsid sleep 300 >/dev/null 2>&1 &\n"])
async def test_bash_env_is_for_the_command_and_not_for_the_shell_around_it(
    e2b_server: E2BServer, sandbox: Sandbox, text: str
) -> None:
    await sandbox.files.write("evil", text)
    path = (await sandbox.run("pwd")).stdout.strip() + "/evil"
    env = {"BASH_ENV": path}
    assert (await sandbox.run("exit 7", env=env)).exit_code == 7
    assert (await sandbox.run("printenv BASH_ENV", env=env)).stdout == f"{path}\n"
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(TREE, env=env, timeout=0.7)
    await require_fine(e2b_server, sandbox)


async def test_the_sandboxes_own_bash_env_is_not_read_either(e2b_server: E2BServer) -> None:
    async with await create(env={"BASH_ENV": "/tmp/evil", "HOME": "/tmp"}) as sandbox:
        for name in ("evil", ".bash_profile"):
            await sandbox.files.write(f"/tmp/{name}", "exit 0\n")
        assert (await sandbox.run("echo $HOME; exit 7")).exit_code == 7
        assert (await sandbox.run("echo $HOME $BASH_ENV")).stdout == "/tmp /tmp/evil\n"
        async with await E2BBackend().connect(sandbox.id) as connected:
            assert (await connected.run("exit 7")).exit_code == 7
        await require_fine(e2b_server, sandbox)
