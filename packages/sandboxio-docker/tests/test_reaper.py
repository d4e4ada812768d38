"""What a killed process leaves behind is removed, and what was detached is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from sandboxio.errors import CreationError
from sandboxio_docker.address import Address
from sandboxio_docker.reaper import Reaper, reaper

CREATE = """
import anyio, os, sys, time
from sandboxio_docker import DockerBackend

async def main():
    backend = DockerBackend()
    nothing = dict(template=None, resources=None, network=None, env=None, secrets=None)
    kept = await backend.create(**nothing, timeout=90, metadata={"reaper-test": sys.argv[1]})
    await kept.detach()
    lost = await backend.create(**nothing, timeout=90, metadata={"reaper-test": sys.argv[1]})
    print(kept.id, lost.id, flush=True)
    if sys.argv[2] == "exit":
        await lost.kill()
        return
    time.sleep(60)

anyio.run(main)
"""


def alive(container: str) -> bool:
    found = subprocess.run(["docker", "inspect", container], capture_output=True, check=False)
    return found.returncode == 0


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.docker
@pytest.mark.parametrize("how", ["process", "group", "exit"])
def test_a_killed_process_leaves_only_what_it_detached(how: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CREATE, f"{os.getpid()}-{how}", how],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    with child:
        kept, lost = child.stdout.readline().split()
        try:
            if how == "process":
                child.kill()
            elif how == "group":
                os.killpg(child.pid, signal.SIGKILL)
            child.wait(20)
            until(lambda: not alive(lost))
            assert alive(kept)
        finally:
            subprocess.run(["docker", "rm", "-fv", kept], capture_output=True, check=False)


@pytest.mark.docker
def test_what_a_user_made_of_a_snapshot_survives_the_one_who_made_the_sandbox() -> None:
    command = [sys.executable, "-c", CREATE, f"{os.getpid()}-snapshot", "process"]
    theirs = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        kept, lost = child.stdout.readline().split()
        try:
            image = docker("commit", lost)
            theirs = docker("run", "-d", "--network", "none", "--entrypoint", "sleep", image, "300")
            child.kill()
            child.wait(20)
            until(lambda: not alive(lost))
            assert alive(theirs)
        finally:
            subprocess.run(["docker", "rm", "-fv", kept, theirs], capture_output=True, check=False)
            docker("rmi", "-f", image)


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def helper() -> Reaper:
    return Reaper()


def pid_of(helper: Reaper) -> int:
    assert helper._child is not None
    return helper._child.pid


def test_the_helper_ends_at_once_when_nothing_is_held(helper: Reaper) -> None:
    helper.hold("a", Address("unix", "/nowhere"))
    child = helper._child
    assert child is not None
    helper.drop("a")
    helper.close()
    assert child.returncode == 0


def test_a_helper_that_died_is_replaced_and_knows_everything(helper: Reaper) -> None:
    helper.hold("a", Address("unix", "/nowhere"))
    first = pid_of(helper)
    os.kill(first, signal.SIGKILL)
    helper.hold("b", Address("unix", "/nowhere"))
    assert pid_of(helper) != first
    assert set(helper._held) == {"a", "b"}
    helper.drop("a")
    helper.drop("b")
    helper.close()


def test_the_helper_is_in_a_session_of_its_own_and_inherits_nothing(helper: Reaper) -> None:
    with open(os.devnull) as file:
        os.set_inheritable(file.fileno(), True)
        helper.hold("a", Address("unix", "/nowhere"))
        pid = pid_of(helper)
        assert os.getsid(pid) == pid
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
    helper.drop("a")
    helper.close()


def test_a_fork_has_a_helper_of_its_own() -> None:
    code = (
        "import json, os, sys\n"
        "from sandboxio_docker.address import Address\n"
        "from sandboxio_docker.reaper import reaper\n"
        "reaper().hold('a', Address('unix', '/nowhere'))\n"
        "mine = reaper().process_id\n"
        "if os.fork() == 0:\n"
        "    assert reaper().process_id != mine and not reaper()._held\n"
        "    reaper().hold('b', Address('unix', '/nowhere')); reaper().drop('b'); reaper().close()\n"
        "    os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
        "reaper().drop('a')\n"
        "child = reaper()._child\n"
        "reaper().close()\n"
        "print(json.dumps(child.returncode))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stderr, json.loads(done.stdout)) == ("", 0)


def test_there_is_one_for_each_process() -> None:
    assert reaper() is reaper()


def test_a_helper_that_does_not_answer_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandboxio_docker.reaper._ANSWER_SECONDS", 0.2)
    reaper = Reaper()
    address = Address("unix", "/nowhere.sock")
    try:
        reaper.hold("one", address)
        first = reaper._child
        assert first is not None
        os.kill(first.pid, signal.SIGSTOP)
        reaper.hold("two", address)
        assert reaper._child is not None
        assert reaper._child.pid != first.pid
        reaper.drop("one")
        reaper.drop("two")
    finally:
        reaper.close()


def test_after_a_restart_that_failed_the_next_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    reaper = Reaper()
    address = Address("unix", "/nowhere.sock")
    try:
        reaper.hold("one", address)
        assert reaper._child is not None
        reaper._child.kill()
        reaper._child.wait()
        with monkeypatch.context() as context:
            context.setattr("sys.executable", "/no/such/python")
            with pytest.raises(CreationError):
                reaper.hold("two", address)
        reaper.hold("two", address)
        reaper.drop("one")
        reaper.drop("two")
    finally:
        reaper.close()
