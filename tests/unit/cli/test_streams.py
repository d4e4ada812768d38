"""Standard input that cannot be read, and output at the pace of its reader."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from sandboxio.cli import main

RUN = ("run", "--backend", "fake://")


class Standing:
    """Stands for a standard input that a test chose."""

    closed = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[str | Path, int], None]]:
    """Make an opened path standard input."""
    opened: list[int] = []

    def stand_in(path: str | Path, flags: int) -> None:
        opened.append(os.open(path, flags))
        monkeypatch.setattr(sys, "stdin", Standing(opened[-1]))

    yield stand_in
    for descriptor in opened:
        os.close(descriptor)


def test_input_that_is_open_for_writing_alone_is_none(
    stand_in: Callable[[str | Path, int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(os.devnull, os.O_WRONLY)  # as `nohup` makes it
    assert main([*RUN, "-c", "cat; echo done"]) == 0
    assert tuple(capfd.readouterr()) == ("done\n", "")


def test_input_that_is_a_folder_is_refused_before_anything_is_created(
    tmp_path: Path, stand_in: Callable[[str | Path, int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, os.O_RDONLY)
    assert main([*RUN, "cat"]) == 2
    assert capfd.readouterr().err.startswith(
        "[SBX_E1000] standard input cannot be read: Is a directory\nFix: "
    )


@pytest.mark.skipif(
    not os.path.exists("/proc/self/mem"), reason="it needs a file that opens and cannot be read"
)
def test_input_that_breaks_off_is_a_failure_of_sandboxio(
    stand_in: Callable[[str | Path, int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in("/proc/self/mem", os.O_RDONLY)
    assert main([*RUN, "--timeout", "20", "cat"]) == 125
    err = capfd.readouterr().err
    assert err.startswith("[SBX_E1700] standard input cannot be read: Input/output error\nFix: ")


def test_a_pipe_is_never_given_more_than_it_takes_at_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    written: list[int] = []
    reading, writing = os.pipe()
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if descriptor == writing:
            written.append(len(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with open(writing, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "stdin", None)
        assert main([*RUN, "-c", "head -c 30000 /dev/zero"]) == 0
    os.close(reading)
    assert sum(written) == 30000
    assert max(written) == select.PIPE_BUF
