"""`sandboxio run`: what it takes, what it passes on, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sandboxio
from sandboxio import ConnectError, ResourceLimitExceeded, SandboxGone
from sandboxio.cli import execution, main
from sandboxio.cli.tool import build_parser

FAKE = ("--backend", "fake://")


class Standing:
    """Stands for a standard input that a test chose."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closed = False

    def fileno(self) -> int:
        return self._descriptor


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)


@pytest.fixture
def pipe_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Pipe something into standard input."""

    def pipe_in(data: bytes) -> None:
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        monkeypatch.setattr(sys, "stdin", Standing(reading))

    return pipe_in


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What `create` was asked for; every creation is refused."""
    asked: list[tuple[Any, dict[str, Any]]] = []

    def refuse(target: object, **keywords: Any) -> None:
        asked.append((target, keywords))
        raise ConnectError("refused")

    monkeypatch.setattr(sandboxio, "create", refuse)
    return asked


def document(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["--", "echo", "a  b"], "a  b\n"),
        (["echo", "--json", "-c"], "--json -c\n"),
        (["echo", "a", "--", "b"], "a -- b\n"),
        (["-c", "echo one; echo two | cat"], "one\ntwo\n"),
    ],
)
def test_the_output_is_passed_on(words: list[str], out: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, *words]) == 0
    assert tuple(capfd.readouterr()) == (out, "")


def test_the_two_streams_stay_apart(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, "-c", "echo out; echo err >&2"]) == 0
    assert tuple(capfd.readouterr()) == ("out\n", "err\n")


@pytest.mark.parametrize("code", [1, 2, 7, 124, 125, 130, 255])
def test_the_exit_code_is_the_commands(code: int) -> None:
    assert main(["run", *FAKE, "-c", f"exit {code}"]) == code


def test_what_is_piped_in_is_its_standard_input(
    pipe_in: Callable[[bytes], None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = bytes(range(256)) * 3
    pipe_in(data)
    assert main(["run", *FAKE, "cat"]) == 0
    assert capfdbinary.readouterr().out == data


def test_input_from_a_file_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("from a file\n")
    with (tmp_path / "in.txt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["run", *FAKE, "cat"]) == 0
    assert capfd.readouterr().out == "from a file\n"


def test_a_command_that_does_not_read_ends_although_the_input_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", Standing(reading))
    assert main(["run", *FAKE, "--timeout", "20", "true"]) == 0
    os.close(writing)


def test_output_to_a_file_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    program = "import sys; from sandboxio.cli import main; sys.exit(main())"
    with target.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", program, "run", *FAKE, "-c", "cat; echo end"],
            input=b"x" * 100_000,
            stdout=file,
            timeout=60,
        )
    assert done.returncode == 0
    assert target.read_bytes() == b"x" * 100_000 + b"end\n"


def test_a_reader_that_goes_away_ends_it() -> None:
    program = "import sys; from sandboxio.cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", program, "run", *FAKE, "echo", "x"],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_python_file_runs_beside_what_was_copied_in(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program.py").write_text("print(open('data.txt').read())")
    (tmp_path / "data.txt").write_text("copied")
    arguments = ["--upload", f"{tmp_path / 'data.txt'}", "--python", str(tmp_path / "program.py")]
    assert main(["run", *FAKE, *arguments]) == 0
    assert capfd.readouterr().out == "copied\n"


def test_a_python_program_can_be_piped_in(
    pipe_in: Callable[[bytes], None], capfd: pytest.CaptureFixture[str]
) -> None:
    pipe_in(b"print(6 * 7)")
    assert main(["run", *FAKE, "--python", "-"]) == 0
    assert capfd.readouterr().out == "42\n"


def test_a_python_file_that_is_not_there_is_wrong_usage(
    tmp_path: Path, requests: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *FAKE, "--python", str(tmp_path / "none.py")]) == 2
    assert "cannot be read: No such file" in capfd.readouterr().err
    assert requests == []


def test_what_was_made_is_copied_out(tmp_path: Path) -> None:
    arguments = ["--download", f"result.txt:{tmp_path / 'mine.txt'}", "-c", "echo made > result.txt; exit 3"]
    assert main(["run", *FAKE, *arguments]) == 3
    assert (tmp_path / "mine.txt").read_text() == "made\n"


@pytest.mark.parametrize(("code", "own"), [(0, 125), (3, 3)])
def test_a_copy_that_fails_shows_only_where_the_command_did_not(
    code: int, own: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--download", f"none:{tmp_path / 'x'}", "-c", f"exit {code}"]
    assert main(["run", *FAKE, *arguments]) == own
    assert "SBX_E1701" in capfd.readouterr().err


def test_a_timeout_is_124_and_names_the_option(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, "--timeout", "0.2", "-c", "echo before; sleep 60"]) == 124
    out, err = capfd.readouterr()
    assert out == "before\n"
    assert "[SBX_E1302]" in err
    assert "Fix: give --timeout more seconds" in err


def test_output_that_nobody_takes_does_not_outlast_the_timeout() -> None:
    program = "import sys; from sandboxio.cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, "run", *FAKE, "--timeout", "0.5", "-c", "seq 100000"],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 124
    assert b"[SBX_E1302] nobody took the output within 0.5 s" in done.stderr


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ([], 300),
        (["--backend", "fake://"], 300),
        (["--backend", "fake://?timeout=7.5"], 7.5),
        (["--backend", "fake://x?a=b&timeout=7"], 7),
        (["--timeout", "3"], 3),
    ],
)
def test_what_a_command_may_take_is_said_by_the_option_or_the_target(
    options: list[str], seconds: float
) -> None:
    arguments = build_parser().parse_args(["run", *options, "true"])
    assert execution.allowed_seconds(arguments) == seconds


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectError("no engine answers"), 125),
        (SandboxGone("it has ended"), 125),
        (sandboxio.BackendNotInstalled("it is missing"), 125),
        (ResourceLimitExceeded("memory_mb=4"), 137),
        (sandboxio.ConfigurationError("it contradicts itself"), 2),
        (ZeroDivisionError(), 125),
    ],
)
def test_what_is_no_word_of_the_command_has_a_code_of_its_own(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object) -> int:
        raise error

    monkeypatch.setattr(execution, "execute", fail)
    assert main(["run", *FAKE, "true"]) == code


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--"],
        ["-c", "true", "--", "false"],
        ["-c", "true", "--python", "x.py"],
        ["--timeout", "0", "true"],
        ["--timeout", "nan", "true"],
        ["--timeout", "inf", "true"],
        ["--memory-mb", "-1", "true"],
        ["--egress", "learn", "true"],
        ["--egress", "allow", "--allow", "example.com", "true"],
        ["--env", "NAME", "true"],
        ["--upload", ":x", "true"],
        ["--download", "x:", "true"],
        ["--require-isolation", "unknown", "true"],
        ["--", ""],
        ["--", "-x"],
        ["--", "echo", "\udcff"],
        ["-c", ""],
        ["-c", " \n"],
        ["-c", "echo \udcff"],
        ["--cwd", "", "true"],
        ["--upload", "/", "true"],
        ["--upload", "no-such-file", "true"],
        ["--upload", "no-such-file:x", "true"],
        ["--download", ".", "true"],
        ["--download", "..", "true"],
        ["--download", "/", "true"],
        ["--download", "x:.", "true"],
        ["--download", "x:no-such-folder/x", "true"],
        ["--memory-mb", "999999999999999999999", "true"],
        ["--disk-mb", "0", "true"],
        ["--cpu", "nan", "true"],
        ["--cpu", "1e300", "true"],
        ["--cpu", "0", "true"],
    ],
)
def test_wrong_usage_is_2_and_creates_nothing(arguments: list[str], requests: list[Any]) -> None:
    assert main(["run", *FAKE, *arguments]) == 2
    assert requests == []


def test_what_is_asked_for_reaches_create(
    requests: list[tuple[Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    options = [
        "--timeout", "5", "--cpu", "0.5", "--memory-mb", "64", "--disk-mb", "32", "--allow", "example.com",
        "--allow", "10.0.0.0/8:5432", "--env", "A=b=c", "--secret-env", "API_TOKEN",
        "--label", "tenant_id=acme", "--require-isolation", "gvisor",
    ]  # fmt: skip
    assert main(["run", "--backend", "docker://x", *options, "true"]) == 125
    ((target, asked),) = requests
    assert target == "docker://x"
    assert asked.pop("timeout") > 5
    assert asked == {
        "resources": sandboxio.Resources(cpu=0.5, memory_mb=64, disk_mb=32),
        "network": sandboxio.NetworkPolicy(allow=("example.com", "10.0.0.0/8:5432")),
        "env": {"A": "b=c"},
        "secrets": {"API_TOKEN": "hunter2"},
        "metadata": {"tenant_id": "acme"},
        "require_isolation": sandboxio.IsolationTier.GVISOR,
    }


def test_a_fix_is_told_in_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, "--download", f"none:{tmp_path / 'x'}", "true"]) == 125
    assert "Fix: list the parent with `ls` to see what exists\n" in capfd.readouterr().err


def test_the_defaults_are_those_of_the_library(requests: list[tuple[Any, dict[str, Any]]]) -> None:
    assert main(["run", "true"]) == 125
    ((target, asked),) = requests
    assert target is None
    assert asked["network"] == sandboxio.NetworkPolicy()
    assert asked["resources"] == sandboxio.Resources()
    assert not {"timeout", "require_isolation"} & set(asked)


@pytest.mark.parametrize("given", ["API_TOKEN=hunter2", "NO_SUCH_VARIABLE"])
def test_a_secret_is_given_by_the_name_of_a_variable_that_is_set(
    given: str, requests: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *FAKE, "--secret-env", given, "true"]) == 2
    assert "hunter2" not in "".join(capfd.readouterr())
    assert requests == []


def test_json_holds_the_output_and_the_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, "--json", "-c", "echo out; printf '\\377' >&2; exit 3"]) == 3
    found = document(capfd)
    assert found.pop("duration_ms") >= 0
    assert found.pop("sandbox_id")
    assert found == {
        "backend": "fake",
        "isolation": "container",
        "exit_code": 3,
        "stdout": "out\n",
        "stderr": "\ufffd",
        "truncated": False,
        "ok": False,
    }


def test_json_after_a_timeout_holds_what_came_before(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *FAKE, "--json", "--timeout", "0.2", "-c", "echo before; sleep 60"]) == 124
    found = document(capfd)
    assert (found["exit_code"], found["stdout"], found["error"]["code"]) == (None, "before\n", "SBX_E1302")


def test_json_is_bounded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from sandboxio.cli import streams

    monkeypatch.setattr(streams, "_CAPTURED_BYTES", 4)
    assert main(["run", *FAKE, "--json", "-c", "echo 123456; echo ab >&2"]) == 0
    found = document(capfd)
    assert (found["stdout"], found["stderr"], found["truncated"]) == ("1234", "ab\n", True)
