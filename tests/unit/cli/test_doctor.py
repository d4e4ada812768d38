"""`sandboxio doctor`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import sandboxio
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


def test_the_text_says_all_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sandboxio, "doctor", lambda: REPORT)
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
    monkeypatch.setattr(sandboxio, "doctor", lambda: SICK)
    assert main(["doctor"]) == 1
    assert "  FAIL engine: gone\n       fix: start\n" in capsys.readouterr().out


@pytest.mark.parametrize(("report", "code"), [(REPORT, 0), (SICK, 1)])
def test_json_holds_the_same(
    report: DoctorReport, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandboxio, "doctor", lambda: report)
    assert main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == report.as_dict()
