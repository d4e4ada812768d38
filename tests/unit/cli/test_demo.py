"""`sandboxio demo`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import pytest

import sandboxio
from sandboxio import ExecResult, IsolationTier
from sandboxio.cli import demo, main

STEPS = ["create", "run", "stream", "egress", "teardown"]

HANGING_DEMO = """
import sys
import anyio, sandboxio
from sandboxio.cli import main

class Config:
    backend_name = "hanging"
    template = None
    from_dsn = classmethod(lambda cls, template, params: cls())

class Sandbox:
    id, backend, isolation = "abc", "hanging", sandboxio.IsolationTier.CONTAINER
    async def run_code(self, code):
        print("running", flush=True)
        await anyio.sleep_forever()
    async def __aenter__(self):
        return self
    async def __aexit__(self, *exc_info):
        print("ended", flush=True)

class Backend:
    config_type, name = Config, "hanging"
    def __init__(self, config): pass
    async def create(self, **request):
        return Sandbox()

sandboxio.register("hanging", "__main__:Backend")
sys.exit(main(["demo", "--backend", "hanging://"]))
"""


class ScriptedSandbox:
    id = "abc"
    backend = "scripted"
    isolation = IsolationTier.CONTAINER

    def __init__(self, probe: ExecResult) -> None:
        self._probe = probe
        self.killed = False

    async def run_code(self, code: str) -> ExecResult:
        return self._probe if code == demo.PROBE else ExecResult(0, "hello\n", "")

    def stream(self, cmd: str) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        raise StopAsyncIteration

    async def wait(self) -> ExecResult:
        return ExecResult(0, "", "", streamed=True)

    async def kill(self) -> None:
        self.killed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.killed = True


class ScriptedConfig:
    backend_name: ClassVar[str] = "scripted"
    template = None

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> ScriptedConfig:
        return cls()


class ScriptedBackend:
    config_type = ScriptedConfig
    name = "scripted"
    probe: ClassVar[ExecResult]

    def __init__(self, config: ScriptedConfig) -> None:
        self.config = config

    async def create(self, **request: Any) -> ScriptedSandbox:
        return ScriptedSandbox(self.probe)


def run_scripted(probe: ExecResult) -> int:
    sandboxio.register("scripted", f"{__name__}:ScriptedBackend")
    ScriptedBackend.probe = probe
    return main(["demo", "--backend", "scripted://", "--json"])


def egress_step(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out)
    return cast("dict[str, Any]", document["steps"][STEPS.index("egress")])


def test_each_step_is_shown_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--backend", "fake://"]) == 0
    choice, *lines = capsys.readouterr().out.splitlines()
    assert choice == "backend fake://: it was asked for"
    assert [line.split()[1] for line in lines] == STEPS
    assert all(re.match(r"ok   \w+ +\d+ ms  \S", line) for line in lines)
    assert "hello from the sandbox" in lines[1]
    assert "denied: " in lines[3]


def test_json_holds_the_same_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--backend", "fake://", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [step["name"] for step in document["steps"]] == STEPS
    assert all(step["ok"] and step["duration_ms"] >= 0 for step in document["steps"])


@pytest.mark.parametrize(
    "reason",
    [
        "OSError: [Errno 101] Network is unreachable",
        "TimeoutError: timed out",
        "PermissionError: [Errno 13] Permission denied",
        "socket.timeout.TimeoutError: timed out",
    ],
)
def test_a_refused_connection_is_a_denial(reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_scripted(ExecResult(1, "", f"Traceback (most recent call last):\n{reason}\n")) == 0
    step = egress_step(capsys)
    assert step["ok"]
    assert step["detail"] == f"1.1.1.1:443 denied: {reason}"


@pytest.mark.parametrize(
    ("probe", "detail"),
    [
        (ExecResult(0, "reached\n", ""), "was reached, which the policy forbids"),
        (
            ExecResult(1, "", "ModuleNotFoundError: No module named 'socket'"),
            "not tried: ModuleNotFoundError",
        ),
        (ExecResult(127, "", ""), "not tried: no reason was given"),
    ],
)
def test_a_probe_that_proves_no_denial_fails_the_demo(
    probe: ExecResult, detail: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_scripted(probe) == 1
    step = egress_step(capsys)
    assert not step["ok"]
    assert detail in step["detail"]


def test_a_failing_step_is_shown_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    sandboxio.register("scripted", f"{__name__}:BrokenBackend")
    assert main(["demo", "--backend", "scripted://", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["code"] == "SBX_E1202"
    assert [(step["name"], step["ok"]) for step in document["steps"]] == [("create", False)]


class BrokenBackend(ScriptedBackend):
    async def create(self, **request: Any) -> ScriptedSandbox:
        raise sandboxio.ConnectError("no engine answers")


def test_a_malformed_target_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--backend", "docker"]) == 2
    assert "SBX_E1000" in capsys.readouterr().err


def test_a_target_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--backend", "x\x1b[31m://"]) == 2
    assert "\x1b" not in "".join(capsys.readouterr())


def test_an_interrupt_ends_the_sandbox_and_is_130() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_DEMO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while "running" not in process.stdout.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "interrupted\n")
    assert "FAIL run" in out
    assert out.endswith("ended\n")
