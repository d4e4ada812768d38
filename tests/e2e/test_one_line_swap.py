"""One program on every backend: the target is the only line that differs, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2b_server.server import E2BServer

import sandboxio

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def _service() -> Iterator[None]:
    with E2BServer() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environ.items():
            patch.setenv(name, value)
        yield
        assert server.leftovers() == []


async def program(target: str, folder: Path) -> dict[str, Any]:
    """What an agent's tool does all day, and what it sees."""
    seen: dict[str, Any] = {}
    async with sandboxio.create(target, env={"GREETING": "good day"}, timeout=120) as sb:
        for name, command in {
            "a list": ["echo", "a b", "*"],
            "a line": "echo one && echo two >&2",
            "an exit code": "exit 7",
            "a missing program": ["no-such-program"],
            "a variable": 'printf "%s" "$GREETING"',
        }.items():
            result = await sb.run(command)
            err = result.stderr if name != "a missing program" else "no-such-program" in result.stderr
            seen[name] = (result.exit_code, result.stdout, err)
        seen["input"] = (await sb.run(["cat"], stdin="ça va\n")).stdout
        seen["code"] = (await sb.run_code("print(sum(range(10)))")).stdout
        broken = await sb.run_code("raise ValueError('unlucky')")
        seen["broken code"] = (broken.ok, "ValueError: unlucky" in broken.stderr)

        await sb.files.mkdir("data/deep", parents=True)
        await sb.files.write("data/deep/bytes", bytes(range(256)))
        await sb.files.write("data/text", "line\n")
        await sb.files.rename("data/text", "data/renamed")
        seen["listing"] = [(entry.name, entry.is_dir) for entry in await sb.files.ls("data")]
        seen["one place"] = (await sb.run("cat data/renamed")).stdout
        await sb.files.download("data", folder / "data")
        seen["downloaded"] = (folder / "data/deep/bytes").read_bytes()
        await sb.files.upload(folder / "data", "again")
        seen["uploaded"] = await sb.files.read("again/deep/bytes")
        await sb.files.remove("data", recursive=True)
        seen["removed"] = await sb.files.exists("data")

        async with sb.stream("echo first; cat", stdin=sandboxio.PIPE) as process:
            chunks = [(await anext(aiter(process))).data]
            await process.write("second\n")
            await process.close_stdin()
            chunks += [chunk.data async for chunk in process]
            seen["stream"] = (b"".join(chunks), (await process.wait()).exit_code)

        for name, call in {
            "a missing file": lambda: sb.files.read("nowhere"),
            "a missing folder": lambda: sb.run("pwd", cwd="/nowhere"),
            "too long": lambda: sb.run("echo so far; sleep 60", timeout=1),
            "an unknown language": lambda: sb.run_code("x", language="brainfuck"),
        }.items():
            with pytest.raises(sandboxio.SandboxError) as caught:
                await call()
            partial = getattr(caught.value, "partial", None)
            seen[name] = (caught.value.code, partial and partial.stdout)
    with pytest.raises(sandboxio.SandboxGone) as gone:
        await sb.run("echo too late")
    seen["afterwards"] = gone.value.code
    return seen


async def on_the_fake(folder: Path) -> dict[str, Any]:
    (folder / "fake").mkdir()
    return await program("fake://", folder / "fake")


async def test_the_program_sees_what_it_should(tmp_path: Path) -> None:
    seen = await on_the_fake(tmp_path)
    assert seen["a line"] == (0, "one\n", "two\n")
    assert seen["a missing program"] == (127, "", True)
    assert seen["listing"] == [("deep", True), ("renamed", False)]
    assert seen["stream"] == (b"first\nsecond\n", 0)
    assert seen["too long"] == ("SBX_E1302", "so far\n")


@pytest.mark.docker
async def test_docker_gives_what_the_fake_gives(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    assert await program("docker://", tmp_path / "real") == await on_the_fake(tmp_path)


@pytest.mark.docker
@pytest.mark.e2b
@pytest.mark.usefixtures("_service")
async def test_e2b_gives_what_the_fake_gives(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    assert await program("e2b://", tmp_path / "real") == await on_the_fake(tmp_path)
