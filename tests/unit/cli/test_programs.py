"""Reading a Python program: from a file, a pipe, or what turns out to be neither."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from sandboxio import ConfigurationError
from sandboxio.cli import programs
from sandboxio.cli.programs import read_program


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def test_a_file_is_read_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "program.py").write_bytes(content)
    assert await read_program(str(tmp_path / "program.py")) == content


async def test_waiting_for_a_pipe_that_nobody_writes_to_can_be_cancelled(fifo: Path) -> None:
    with anyio.fail_after(5), anyio.move_on_after(0.05) as scope:
        await read_program(str(fifo))
    assert scope.cancelled_caught


async def test_what_comes_through_a_named_pipe_is_read_to_its_end(fifo: Path) -> None:
    found: list[bytes] = []

    async def read() -> None:
        found.append(await read_program(str(fifo)))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.to_thread.run_sync(fifo.write_bytes, b"print(1)")
    assert found == [b"print(1)"]


async def test_what_never_ends_is_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_LARGEST_BYTES", 1 << 20)
    with anyio.fail_after(20), pytest.raises(ConfigurationError, match="it is longer than 1 MiB"):
        await read_program("/dev/zero")


async def test_standard_input_that_never_ends_is_none_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_LARGEST_BYTES", 1 << 20)
    with Path("/dev/zero").open("rb") as zeros:
        monkeypatch.setattr(sys, "stdin", zeros)
        with anyio.fail_after(20), pytest.raises(ConfigurationError, match="no program"):
            await read_program("-")


async def test_standard_input_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Folder:
        closed = False

        def fileno(self) -> int:
            return descriptor

    descriptor = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(sys, "stdin", Folder())
    with pytest.raises(ConfigurationError, match="standard input cannot be read: Is a directory"):
        await read_program("-")
    os.close(descriptor)


@pytest.mark.parametrize("name", ["none.py", "."])
async def test_what_cannot_be_read_is_wrong_usage(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read: "):
        await read_program(name)


async def test_no_descriptor_is_left_open(fifo: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with anyio.move_on_after(0.01):
            await read_program(str(fifo))
    assert len(os.listdir("/proc/self/fd")) == before
