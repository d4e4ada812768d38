"""Which backend the demo chooses by itself, and what it says where there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import anyio
import pytest

import sandboxio
from sandboxio import BackendNotInstalled, Check, ConnectError
from sandboxio.cli import main
from sandboxio.cli.selection import Selection, select_backend
from sandboxio.diagnosis import examination


class PlainConfig:
    backend_name: ClassVar[str] = "plain"
    template: ClassVar[str | None] = None

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> PlainConfig:
        return cls()


class Backend:
    """Says of itself what a test wants."""

    name = "plain"

    def __init__(self, outcome: tuple[Check, ...] | Exception) -> None:
        self._outcome = outcome

    async def diagnose(self) -> tuple[Check, ...]:
        await anyio.lowlevel.checkpoint()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


WORKS = Backend((Check("engine", "ok"),))
WARNS = Backend((Check("engine", "ok"), Check("image", "warning", "it is pulled at first use")))
BREAKS = Backend(RuntimeError("token=hunter2"))
FAILS = Backend((Check("engine", "failed", "no engine answers", "start it"),))
RAISES = Backend(ConnectError("it is away", hint="bring it back"))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Backend]:
    """The backends that are installed, by name; nothing at first, and no credentials are set."""
    installed: dict[str, Backend] = {}
    monkeypatch.delenv("E2B_API_KEY", raising=False)

    def backend_for(target: str) -> Any:
        name = target.removesuffix("://")
        if name not in installed:
            raise BackendNotInstalled(f"{name} is not installed", hint=f"uv sync --inexact --extra {name}")
        return installed[name]

    monkeypatch.setattr(sandboxio, "backend_for", backend_for)
    return installed


def selected() -> Selection:
    return anyio.run(select_backend)


def test_the_default_comes_first(machine: dict[str, Backend], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "k")
    machine.update(e2b=WORKS, docker=WORKS)
    assert selected() == Selection("docker://", "it is installed and works")


def test_what_may_still_be_in_the_way_is_said(machine: dict[str, Backend]) -> None:
    machine.update(docker=WARNS)
    assert selected().reason == "it is installed; image: it is pulled at first use"


@pytest.mark.parametrize(
    ("docker", "why"),
    [
        (FAILS, "no engine answers"),
        (RAISES, "[SBX_E1202] it is away"),
        (BREAKS, "[SBX_E1202] the backend failed with RuntimeError"),
    ],
)
def test_one_that_does_not_work_gives_way_and_is_named(
    docker: Backend, why: str, machine: dict[str, Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_API_KEY", "k")
    machine.update(docker=docker, e2b=WORKS)
    assert selected() == Selection("e2b://", f"it is installed and works; docker: {why}")


def test_one_without_its_key_is_not_tried(machine: dict[str, Backend]) -> None:
    machine.update(docker=FAILS, e2b=RAISES)
    with pytest.raises(ConnectError) as caught:
        selected()
    assert caught.value.message == (
        "no installed backend works here: docker: no engine answers; e2b: E2B_API_KEY not set"
    )
    assert caught.value.hint == "start it"


def test_one_that_does_not_answer_in_time_gives_way(
    machine: dict[str, Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(Backend):
        async def diagnose(self) -> tuple[Check, ...]:
            await anyio.sleep_forever()
            raise AssertionError

    monkeypatch.setattr(examination, "_STEP_SECONDS", 0.01)
    machine.update(docker=Stuck(()))
    with pytest.raises(ConnectError, match="no answer within"):
        selected()


def test_the_fake_never_stands_in(machine: dict[str, Backend]) -> None:
    machine.update(fake=WORKS)
    with pytest.raises(BackendNotInstalled):
        selected()


def test_on_the_bare_distribution_both_commands_are_printed(
    machine: dict[str, Backend], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo"]) == 1
    captured = capsys.readouterr()
    assert "Fix: uv sync --inexact --extra docker\n" in captured.err
    assert captured.err.endswith('\nOr without installing anything: uvx --from ".[docker]" sandboxio demo\n')
    assert captured.out == ""


def test_they_are_part_of_the_document(
    machine: dict[str, Backend], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["hint"] == "uv sync --inexact --extra docker"
    assert document["one_shot_command"] == 'uvx --from ".[docker]" sandboxio demo'


@pytest.mark.docker
def test_the_demo_on_an_engine_says_what_it_chose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["reason"]) == ("docker://", "it is installed and works")
    assert [step["name"] for step in document["steps"] if step["ok"]] == [
        "create", "run", "stream", "egress", "teardown",
    ]  # fmt: skip
