"""The command line tool: arguments, exit codes, and what goes where."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

import sandboxio
from sandboxio import BackendNotFound, BackendNotInstalled, ConfigurationError, ConnectError
from sandboxio.cli import demo, doctor, main, reap
from sandboxio.cli.output import Output, printable


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: object, output: object) -> bool:
        raise error

    monkeypatch.setattr(doctor, "run", run)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["doctor", "--no-such-option"],
        ["demo", "--backend"],
        ["reap", "--label", "x"],
    ],
)
def test_wrong_usage_is_2_and_explained_on_standard_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: sandboxio" in captured.err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["demo", "--help"], ["doctor", "--help"], ["reap", "--help"]]
)
def test_help_is_0(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "usage: sandboxio" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sandboxio {sandboxio.__version__}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectError("no engine answers"), 1),
        (BackendNotInstalled("it is missing"), 1),
        (BackendNotFound("nobody knows it"), 2),
        (ConfigurationError("it is malformed"), 2),
    ],
)
def test_an_error_is_three_lines_and_an_exit_code(
    error: sandboxio.SandboxError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("SBX_DEBUG", raising=False)
    fail_with(error, monkeypatch)
    assert main(["doctor"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{error}\n")


def test_an_error_is_part_of_the_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(ConnectError("no engine answers", hint="start it"), monkeypatch)
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "error": {
            "code": "SBX_E1202",
            "message": "no engine answers",
            "hint": "start it",
            "url": "https://docs.sandboxio.dev/errors/SBX_E1202",
        },
    }


def test_debugging_adds_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SBX_DEBUG", "1")
    fail_with(ConnectError("no engine answers"), monkeypatch)
    assert main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError(), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        main(["doctor"])


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = [sys.executable, "-m", "sandboxio", "doctor", "--json"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "sandboxio", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"sandboxio {sandboxio.__version__}\n")


def test_help_loads_no_more_than_it_needs() -> None:
    program = (
        "import sys\nfrom sandboxio.cli import main\nmain(['--help'])\n"
        "print({'anyio', 'asyncio', 'logging', 'json', 'sandboxio.api'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "set()"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    stream: io.StringIO, variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    styled = Output(as_json=False).styled("ok", "good")
    assert styled == ("\x1b[32mok\x1b[0m" if coloured else "ok")


def test_what_a_sandbox_writes_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b]0;title\x07b\u202ec\nd") == "a\ufffd]0;title\ufffdb\ufffdc\nd"


def test_every_command_is_documented() -> None:
    for command in (demo, doctor, reap):
        assert command.SUMMARY
        assert command.DESCRIPTION.endswith(".")


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.line("not printed")
    output.document["value"] = 1
    output.finish(ok=True)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document == {"value": 1, "ok": True}
