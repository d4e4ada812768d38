"""The command line tool: arguments, exit codes, and what goes where."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import sandboxio
from sandboxio import (
    BackendNotFound,
    BackendNotInstalled,
    ConfigurationError,
    ConnectError,
    OrphanedSandboxWarning,
)
from sandboxio.cli import demo, doctor, main, reap, run
from sandboxio.cli.output import Output, printable

COMMANDS: dict[str, Any] = {"demo": demo, "doctor": doctor, "reap": reap, "run": run}


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(arguments: object, output: object) -> int:
        raise error

    monkeypatch.setattr(doctor, "run", failing)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["doctor", "--no-such-option"],
        ["demo", "--backend"],
        ["reap", "--label", "x"],
        ["reap", "--kil"],
        ["doctor", "--", "x"],
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
    "arguments",
    [["run", "--image", "x"], ["doctor", "--no-such-option"], ["demo", "extra"], ["reap", "--", "x"]],
)
def test_a_mistake_in_the_options_of_a_command_shows_its_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"usage: sandboxio {arguments[0]} [")


@pytest.mark.parametrize(
    "arguments", [["\x1b[31m"], ["demo", "\x1b[31m"], ["run", "--timeout", "\x1b[31m", "x"]]
)
def test_a_mistake_is_repeated_without_what_steers_a_terminal(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_help_is_0_and_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "usage: sandboxio" in out
    assert all(f"\n    {command} " in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"usage: sandboxio {command}" in out
    assert f"\n\nexamples:\n  {COMMANDS[command].EXAMPLES.strip()}\n" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_a_command_can_be_parsed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    monkeypatch.setattr(COMMANDS[command], "run", lambda arguments, output: 0)
    for line in COMMANDS[command].EXAMPLES.splitlines():
        words = shlex.split(line.rpartition(" | sandboxio")[2] if "echo" in line else line.strip()[9:])
        assert main(words) == 0


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


def test_an_unexpected_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SBX_DEBUG", raising=False)
    fail_with(ZeroDivisionError("of\nall things"), monkeypatch)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == (
        "sandboxio: unexpected ZeroDivisionError: of all things; set SBX_DEBUG=1 to see where it happened\n"
    )


def test_an_unexpected_error_is_part_of_the_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(ZeroDivisionError("of all things"), monkeypatch)
    assert main(["doctor", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["url"]) == (None, None)
    assert error["message"] == "unexpected ZeroDivisionError: of all things"


@pytest.mark.parametrize("with_rich", [True, False])
def test_debugging_shows_where_an_unexpected_error_came_from(
    with_rich: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SBX_DEBUG", "1")
    if with_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.traceback", None)
    fail_with(ZeroDivisionError("of all things"), monkeypatch)
    assert main(["doctor"]) == 1
    err = capsys.readouterr().err
    assert "ZeroDivisionError: of all things" in err
    assert ("Traceback (most recent call last):\n" in err) is not with_rich
    assert "raise error" in err


@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_secret_is_in_no_error(
    debug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SBX_DEBUG", debug)

    def failing(arguments: object, output: Output) -> int:
        output.keep_out(["hunter2"])
        raise ZeroDivisionError("token=hunter2")

    monkeypatch.setattr(doctor, "run", failing)
    assert main(["doctor", "--json"]) == 1
    captured = capsys.readouterr()
    assert "token=[redacted]" in captured.out
    assert "token=[redacted]" in captured.err
    assert "hunter2" not in captured.out + captured.err


def test_a_warning_of_the_library_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warning(arguments: object, output: object) -> int:
        warnings.simplefilter("always")
        warnings.warn("the sandbox x may be left", OrphanedSandboxWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(doctor, "run", warning)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().err == "warning: the sandbox x may be left\n"


def test_an_interruption_is_part_of_the_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert main(["doctor", "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == {"interrupted": "SIGINT", "ok": False}


def test_an_error_that_a_task_group_wrapped_is_shown_as_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ConnectError("no engine answers")
    fail_with(ExceptionGroup("unhandled", [ExceptionGroup("unhandled", [error])]), monkeypatch)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == f"{error}\n"


def test_several_errors_at_once_are_told_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(ExceptionGroup("unhandled", [ConnectError("one"), ConnectError("two")]), monkeypatch)
    assert main(["doctor"]) == 1
    assert "unexpected ExceptionGroup: unhandled (2 sub-exceptions)" in capsys.readouterr().err


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "sandboxio", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"sandboxio {sandboxio.__version__}\n")


def test_help_loads_no_more_than_it_needs() -> None:
    program = (
        "import sys\nfrom sandboxio.cli import main\nmain(['--help'])\n"
        "print({'anyio', 'asyncio', 'logging', 'json', 'docker', 'e2b', 'sandboxio.api'} & set(sys.modules))"
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
    for command in COMMANDS.values():
        assert command.SUMMARY
        assert command.DESCRIPTION.endswith(".")


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.line("not printed")
    output.document["value"] = 1
    output.finish(ok=True)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document == {"value": 1, "ok": True}
