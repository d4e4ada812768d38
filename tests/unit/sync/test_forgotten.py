"""A handle that nobody closed gives its thread back, and is told."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

import sandboxio

from .scripted import scripted
from .threads import our_threads, wait_until


def test_a_forgotten_sandbox_gives_its_thread_back_and_is_told() -> None:
    recorded, backend = scripted()
    with pytest.warns(ResourceWarning, match="the scripted sandbox abc was never closed"):
        sandboxio.create_sync(backend)  # collected at once
    wait_until(lambda: our_threads() == [])
    assert recorded.log == []


def test_a_part_of_a_sandbox_keeps_its_thread() -> None:
    _, backend = scripted()
    files = sandboxio.create_sync(backend).files
    assert files.read("a") == b"data"
    with pytest.warns(ResourceWarning):
        del files
    wait_until(lambda: our_threads() == [])


def test_nobody_waits_for_the_thread_of_a_forgotten_sandbox() -> None:
    _, backend = scripted()
    sandbox = sandboxio.create_sync(backend)
    unblocked = threading.Event()
    cast("Any", sandbox)._loop._state._soon(lambda: unblocked.wait(30))
    with pytest.warns(ResourceWarning):
        del sandbox
    assert len(our_threads()) == 1
    unblocked.set()
    wait_until(lambda: our_threads() == [])


@pytest.mark.parametrize(
    ("warnings", "told"),
    [("default::UserWarning", ""), ("default", "the scripted sandbox abc was never closed")],
)
def test_an_open_sandbox_does_not_keep_the_interpreter_from_exiting(warnings: str, told: str) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import sandboxio, scripted\n"
        "sandbox = sandboxio.create_sync(scripted.scripted()[1])\n"
        "print(sandbox.run('x').ok)\n"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", program, folder], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "True\n")
    assert told in done.stderr
    assert told or not done.stderr
