"""`sandboxio doctor`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sandboxio import BackendReport, Check, DoctorReport
from sandboxio.cli import main

REPORT = DoctorReport(
    version="1.2",
    python="CPython 3.13.0",
    platform="Linux 6.1 x86_64",
    variables=("SBX_DEBUG",),
    backends=(
        BackendReport(
            "acme",
            "container",
            ("RUN_COMMAND",),
            {"ACME_KEY": True, "ACME_TEAM": False},
            (
                Check("engine", "ok", "version 1", "not shown"),
                Check("switch", "warning", "loosened", "tighten it"),
            ),
            {"acme-sdk": "2", "acme-wire": "3"},
        ),
    ),
    not_installed={"other": "install other"},
    versions={"anyio": "4"},
)
SICK = replace(
    REPORT,
    backends=(BackendReport("acme", "unknown", (), {}, (Check("engine", "failed", "gone", "start"),)),),
)


def find(report: DoctorReport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this what the examination finds."""

    async def examine() -> DoctorReport:
        return report

    monkeypatch.setattr("sandboxio.diagnosis.examine", examine)


def test_the_text_says_all_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find(REPORT, monkeypatch)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == (
        "sandboxio 1.2\n"
        "CPython 3.13.0 on Linux 6.1 x86_64\n"
        "needs: anyio 4\n"
        "set: SBX_DEBUG\n"
        "\n"
        "acme  isolation: container\n"
        "  acme-sdk 2, acme-wire 3\n"
        "  RUN_COMMAND\n"
        "  ACME_KEY is set\n"
        "  ACME_TEAM is not set\n"
        "  ok   engine: version 1\n"
        "  warn switch: loosened\n"
        "       fix: tighten it\n"
        "\n"
        "other  not installed: install other\n"
    )


def test_a_failed_check_is_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find(SICK, monkeypatch)
    assert main(["doctor"]) == 1
    assert "  FAIL engine: gone\n       fix: start\n" in capsys.readouterr().out


@pytest.mark.parametrize(("report", "code"), [(REPORT, 0), (SICK, 1)])
def test_json_holds_the_same(
    report: DoctorReport, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find(report, monkeypatch)
    assert main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == report.as_dict()


def test_nothing_of_a_report_steers_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    escape = "\x1b[31m"
    backend = BackendReport(
        f"a{escape}",
        f"i{escape}",
        (),
        {},
        (Check(f"c{escape}", "ok", f"d{escape}"),),
        {f"v{escape}": f"1{escape}"},
    )
    find(replace(REPORT, variables=(f"SBX_{escape}RED",), backends=(backend,)), monkeypatch)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "set: SBX_\ufffd[31mRED\n" in out
    assert "\x1b" not in out


HANGS = """
import sys
import anyio, sandboxio
from sandboxio.cli import main
from sandboxio.testing.fake import FakeBackend

class Hanging(FakeBackend):
    async def diagnose(self):
        print("ready", file=sys.stderr, flush=True)
        await anyio.sleep_forever()

sandboxio.register("docker", "__main__:Hanging")
sys.exit(main(["doctor", *sys.argv[1:]]))
"""


@contextmanager
def hanging(*options: str) -> Generator[subprocess.Popen[str]]:
    """A `doctor` that waits for a backend."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGS, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "the terminal has gone"),
    ],
)
def test_a_signal_is_in_the_document(number: signal.Signals, code: int, word: str) -> None:
    with hanging("--json") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, f"{word}\n")
    assert json.loads(out) == {"interrupted": number.name, "ok": False}


def test_a_second_interrupt_adds_nothing() -> None:
    with hanging() as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
