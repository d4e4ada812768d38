"""Ctrl-C and its kin: whatever the moment, nothing is left, and the exit code says what happened."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest

from sandboxio.cli.interruption import Interrupted, run_to_end
from sandboxio.cli.signals import SignalsHeld

# The fake under the name of the default backend; at the end it says how many sandboxes are left in it.
ON_THE_FAKE = """
import os, sys
import anyio, sandboxio
from sandboxio.cli import main
from sandboxio.testing.fake import FakeBackend

made = []

class Recorded(FakeBackend):
    def __init__(self, config=None):
        super().__init__(config)
        made.append(self)

    async def create(self, **request):
        if os.environ.get("HANG_IN") == "create":
            print("ready", flush=True)
            await anyio.sleep_forever()
        return await super().create(**request)

    async def list_managed(self):
        if os.environ.get("HANG_IN") == "list":
            print("ready", flush=True)
            await anyio.sleep_forever()
        return await super().list_managed()

    async def diagnose(self):
        if os.environ.get("HANG_IN") == "diagnose":
            print("ready", flush=True)
            await anyio.sleep_forever()
        return await super().diagnose()

sandboxio.register("docker", "__main__:Recorded")
code = main(sys.argv[1:])
os.environ.pop("HANG_IN", None)
left = sum(len(anyio.run(backend.list_managed)) for backend in made)
print("left", left, file=sys.stderr)
sys.exit(99 if left else code)
"""

SLOW_TO_END = """
import sys
import anyio, sandboxio
from sandboxio.cli import main

class Config:
    backend_name, template = "slow", None
    from_dsn = classmethod(lambda cls, template, params: cls())

class Sandbox:
    id, backend, isolation = "abc", "slow", sandboxio.IsolationTier.CONTAINER
    async def run_code(self, code):
        print("ready", flush=True)
        await anyio.sleep_forever()
    async def __aenter__(self):
        return self
    async def __aexit__(self, *exc_info):
        with anyio.CancelScope(shield=True):
            print("ending", flush=True)
            await anyio.sleep(0.5)
            print("ended", flush=True)

class Backend:
    config_type, name = Config, "slow"
    def __init__(self, config): pass
    async def create(self, **request):
        return Sandbox()

sandboxio.register("slow", "__main__:Backend")
sys.exit(main(["demo", "--backend", "slow://"]))
"""

# The same, as the program that a user starts.
THE_TOOL_ITSELF = (
    ON_THE_FAKE.replace("main(sys.argv[1:])", "main()").partition("os.environ.pop")[0]
    + """
sys.exit(code)
"""
)

# Struck by a signal while the tool is being loaded.
STRUCK_WHILE_LOADING = """
import os, sys
from sandboxio.cli import main

class Striking:
    def find_spec(self, name, path=None, target=None):
        if name == "sandboxio.cli.tool":
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))

sys.meta_path.insert(0, Striking())
sys.exit(main(["reap", "--backend", "fake://", "--json"]))
"""

READY_THEN_WAITS = ("run", "-c", "echo ready; cat")


@contextmanager
def started(
    program: str, *arguments: str, hang_in: str = "", ignoring: signal.Signals | None = None
) -> Generator[subprocess.Popen[str]]:
    """A tool that has printed `ready`. Its standard input stays open."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"HANG_IN": hang_in, "PATH": "/usr/bin:/bin"},
        preexec_fn=None if ignoring is None else lambda: signal.signal(ignoring, signal.SIG_IGN) and None,
    )
    with process:
        try:
            wait_for("ready", process)
            yield process
        finally:
            process.kill()


def wait_for(word: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    while word not in (line := process.stdout.readline()):
        assert line, process.stderr.read() if process.stderr else ""


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdin is not None
    assert process.stderr is not None
    code = process.wait(timeout=30)
    return code, process.stderr.read()


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "the terminal has gone"),
    ],
)
def test_a_signal_ends_the_sandbox_of_a_running_command(number: signal.Signals, code: int, word: str) -> None:
    with started(ON_THE_FAKE, *READY_THEN_WAITS) as process:
        process.send_signal(number)
        assert end_of(process) == (code, f"{word}\nleft 0\n")


@pytest.mark.parametrize(
    ("arguments", "moment"),
    [
        (("run", "true"), "create"),
        (("demo",), "create"),
        (("demo",), "diagnose"),
        (("reap", "--kill"), "list"),
        (("doctor",), "diagnose"),
    ],
)
def test_an_interrupt_ends_any_command(arguments: tuple[str, ...], moment: str) -> None:
    with started(ON_THE_FAKE, *arguments, hang_in=moment) as process:
        process.send_signal(signal.SIGINT)
        assert end_of(process) == (130, "interrupted\nleft 0\n")


def test_a_second_interrupt_does_not_cut_the_end_short() -> None:
    with started(SLOW_TO_END) as process:
        process.send_signal(signal.SIGINT)
        wait_for("ending", process)
        process.send_signal(signal.SIGINT)
        wait_for("ended", process)
        assert end_of(process) == (130, "interrupted\n")


def test_a_signal_that_this_process_was_told_to_ignore_is_ignored() -> None:
    with started(ON_THE_FAKE, *READY_THEN_WAITS, ignoring=signal.SIGINT) as process:
        process.send_signal(signal.SIGINT)
        assert process.stdin is not None
        process.stdin.write("still here\n")
        process.stdin.flush()
        wait_for("still here", process)
        process.send_signal(signal.SIGTERM)
        assert end_of(process) == (143, "terminated\nleft 0\n")


def test_a_signal_ends_the_work_also_when_the_word_for_it_cannot_be_said() -> None:
    def failing(word: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    not_ended: list[str] = []

    async def waits() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep(20)
        not_ended.append("after 20 s")

    with SignalsHeld(), pytest.raises(Interrupted, match="SIGTERM"):
        run_to_end(waits, on_signal=failing)
    assert not_ended == []


@pytest.mark.parametrize(
    ("arguments", "hang_in"),
    [(READY_THEN_WAITS, ""), (("run", "--json", "true"), "create"), (("demo",), "create")],
)
def test_a_signal_ends_a_command_whose_output_nobody_reads_any_more(
    arguments: tuple[str, ...], hang_in: str
) -> None:
    # As in `sandboxio run … 2>&1 | tee log`, where Ctrl-C ends `tee` first.
    with started(ON_THE_FAKE, *arguments, hang_in=hang_in) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_while_the_tool_is_loaded_is_answered_in_order(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRUCK_WHILE_LOADING],
        capture_output=True,
        text=True,
        timeout=60,
        env={"SIGNAL": str(int(number))},
    )
    assert done.returncode == 128 + number
    document = json.loads(done.stdout)
    assert (document["interrupted"], document["ok"]) == (number.name, False)
    assert "Traceback" not in done.stderr


def test_many_signals_leave_one_document() -> None:
    with started(ON_THE_FAKE, "run", "--json", "true", hang_in="create") as process:
        assert process.stdout is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
        document = json.loads(process.stdout.read())
        code, words = end_of(process)
    assert code in (129, 130, 143)
    assert signal.Signals[document["interrupted"]] == code - 128
    assert len(words.splitlines()) == 2  # the word for the first one, and what the program says at its end


def test_nothing_is_held_back_once_the_tool_has_returned() -> None:
    words: list[str] = []
    with SignalsHeld():
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        run_to_end(anyio.lowlevel.checkpoint, on_signal=words.append)
    assert words == []
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize(
    ("command", "moment"), [("reap", "list"), ("doctor", "diagnose"), ("demo", "create")]
)
def test_no_further_signal_disturbs_the_end_the_word_or_the_exit(command: str, moment: str) -> None:
    with started(THE_TOOL_ITSELF, command, "--json", hang_in=moment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        word = process.stderr.readline()
        while process.poll() is None:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                process.send_signal(number)
            time.sleep(0.001)  # they are to strike at every moment of the rest
        document = json.loads(process.stdout.read())
        assert (document["interrupted"], word, end_of(process)) == ("SIGINT", "interrupted\n", (130, ""))


def test_a_signal_that_comes_when_the_work_is_done_changes_nothing() -> None:
    words: list[str] = []
    kept: list[AsyncGenerator[None]] = []

    async def until_the_loop_closes() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    async def work() -> str:
        kept.append(until_the_loop_closes())
        await anext(kept[0])
        return "done"

    assert run_to_end(work, on_signal=words.append) == "done"
    assert words == []


def containers(label: str) -> list[str]:
    import docker

    client = docker.from_env(timeout=30)
    try:
        return [
            found.name for found in client.containers.list(all=True, filters={"label": f"cli_test={label}"})
        ]
    finally:
        client.close()


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay_seconds", [0.2, 0.35, 0.5, 0.65, 0.8, 1.2])
def test_at_no_moment_is_a_container_left(number: signal.Signals, delay_seconds: float) -> None:
    label = uuid4().hex
    command = [sys.executable, "-m", "sandboxio", "run", "--label", f"cli_test={label}", "--", "sleep", "60"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            time.sleep(delay_seconds)  # each moment is as good as any other
            process.send_signal(number)
            code = process.wait(timeout=30)
        finally:
            process.kill()
    # One that strikes before the tool has taken signals over ends it as it ends any program.
    assert code in (128 + number, -number)
    assert containers(label) == []


@pytest.mark.docker
def test_a_command_that_ends_leaves_no_container() -> None:
    label = uuid4().hex
    command = [sys.executable, "-m", "sandboxio", "run", "--label", f"cli_test={label}"]
    done = subprocess.run(
        [*command, "--json", "-c", "cat; id -u; exit 5"], input=b"in\n", stdout=subprocess.PIPE, timeout=120
    )
    assert done.returncode == 5
    assert b'"stdout": "in\\n' in done.stdout
    assert containers(label) == []


@pytest.mark.docker
def test_a_container_that_does_not_run_is_reaped_by_its_label() -> None:
    import docker

    label = uuid4().hex
    client = docker.from_env(timeout=30)
    try:
        made = client.containers.create(
            os.environ.get("SBX_DOCKER_IMAGE") or "python:3.12-slim",
            "true",
            name=f"sandboxio-{label[:16]}",
            labels={
                "sandboxio.managed": "true",
                "sandboxio.creation": label,
                "sandboxio.metadata": '["cli_test"]',
                "cli_test": label,
            },
        )
    finally:
        client.close()
    command = [sys.executable, "-m", "sandboxio", "reap", "--label", f"cli_test={label}"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert listed.returncode == 0
    assert f"{str(made.id)[:20]}  docker   created" in listed.stdout
    assert len(containers(label)) == 1
    ended = subprocess.run([*command, "--kill"], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, containers(label)) == (0, [])
