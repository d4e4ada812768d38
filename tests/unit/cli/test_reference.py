"""The page about the command line says what the tool does: its options, exit codes and fields."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest

import sandboxio
from sandboxio.cli import exit_codes, main
from sandboxio.cli.tool import build_parser

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
COMMANDS = ("doctor", "demo", "run", "reap")


def section(command: str) -> str:
    return PAGE.partition(f"\n## sandboxio {command}\n")[2].partition("\n## ")[0]


def parsers() -> dict[str, argparse.ArgumentParser]:
    (commands,) = [
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(commands.choices)


def test_every_command_has_a_section() -> None:
    assert tuple(parsers()) == COMMANDS
    assert all(section(command) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_has_the_options_that_there_are(command: str) -> None:
    cells = [line.split(" | ")[0] for line in section(command).splitlines() if line.startswith("| `-")]
    described = {option for cell in cells for option in re.findall(r"`(--?[a-z-]+)", cell)}
    existing = {option for action in parsers()[command]._actions for option in action.option_strings}
    assert described == existing - {"-h", "--help"}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_are_real_command_lines(command: str) -> None:
    block = re.search(r"```bash\n(.*?)```", section(command), re.DOTALL)
    assert block is not None
    assert all(f"sandboxio {command}" in line for line in block[1].splitlines())


def test_every_exit_code_is_described() -> None:
    table = PAGE.partition("### Exit codes")[2].partition("\n## ")[0]
    codes = {getattr(exit_codes, name) for name in exit_codes.__all__ if name.isupper()}
    described = {int(number) for row in table.splitlines() for number in re.findall(r"\b\d+\b", row)}
    assert described == codes | {129, 143}


def fields(value: object) -> set[str]:
    """The names of all fields of a document, those in mappings of the user's own names left out."""
    if isinstance(value, list):
        return set().union(*(fields(item) for item in value))
    if not isinstance(value, dict):
        return set()
    own = {"versions", "credentials", "not_installed", "metadata"}
    return set(value).union(*(fields(item) for name, item in value.items() if name not in own))


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["demo", "--backend", "fake://"],
        ["run", "--backend", "fake://", "true"],
        ["reap", "--backend", "fake://"],
    ],
)
def test_every_field_is_described(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = sandboxio.Check("engine", "ok")
    backend = sandboxio.BackendReport("acme", "container", (), {}, (check,))
    report = sandboxio.DoctorReport("1", "3", "Linux", (), (backend,), {})

    async def examine() -> sandboxio.DoctorReport:
        return report

    monkeypatch.setattr("sandboxio.diagnosis.examine", examine)
    command, *options = arguments
    monkeypatch.setattr("sys.stdin", None)
    assert main([command, "--json", *options]) == 0
    found = fields(json.loads(capsys.readouterr().out)) - {"ok"}
    assert found <= set(re.findall(r"`(\w+)`", section(command)))


def test_a_field_that_is_not_described_would_be_noticed() -> None:
    assert fields({"a": [{"b": 1}], "versions": {"x": "1"}}) == {"a", "b", "versions"}
