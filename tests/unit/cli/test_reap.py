"""`sandboxio reap`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import anyio
import pytest

import sandboxio
from sandboxio import Capability, ConnectError, IsolationTier, ManagedSandbox
from sandboxio.cli import inventory, main

CREATED = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
EXPIRES = datetime(2026, 5, 4, 3, 7, 1, tzinfo=UTC)


class ShelfConfig:
    backend_name: ClassVar[str] = "shelf"
    template: ClassVar[str | None] = None

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> ShelfConfig:
        return cls()


class BareBackend:
    """Cannot list anything."""

    config_type = ShelfConfig
    name = "shelf"
    capabilities = Capability.RUN_COMMAND
    isolation = IsolationTier.CONTAINER

    def __init__(self, config: ShelfConfig) -> None:
        pass


class ShelfBackend(BareBackend):
    """Holds one running sandbox and one that was stopped."""

    left: ClassVar[list[ManagedSandbox]] = []
    stubborn: ClassVar[set[str]] = set()

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        await anyio.lowlevel.checkpoint()
        return tuple(self.left)

    async def kill_managed(self, sandbox_id: str) -> None:
        await anyio.lowlevel.checkpoint()
        if sandbox_id in self.stubborn:
            raise ConnectError("the provider refused\x1b[2J")
        self.left[:] = [managed for managed in self.left if managed.id != sandbox_id]


@pytest.fixture(autouse=True)
def shelf() -> Iterator[None]:
    ShelfBackend.stubborn.clear()
    ShelfBackend.left[:] = [
        ManagedSandbox("one", "shelf", CREATED, EXPIRES, {"tenant_id": "acme", "run": "7"}, "running"),
        ManagedSandbox("two", "shelf", metadata={"tenant_id": "other"}, state="exited"),
    ]
    sandboxio.register("shelf", f"{__name__}:ShelfBackend")
    sandboxio.register("bare", f"{__name__}:BareBackend")
    yield
    ShelfBackend.left.clear()


def ids_left() -> list[str]:
    return [managed.id for managed in ShelfBackend.left]


def test_what_is_there_is_listed_and_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "shelf://"]) == 0
    assert capsys.readouterr().out == (
        "SANDBOX  BACKEND  STATE    CREATED                    EXPIRES                    LABELS\n"
        "one      shelf    running  2026-05-04 03:02:01+00:00  2026-05-04 03:07:01+00:00  "
        "run=7 tenant_id=acme\n"
        "two      shelf    exited   unknown                    unknown                    tenant_id=other\n"
        "2 sandboxes; --kill ends what is listed\n"
    )
    assert ids_left() == ["one", "two"]


def test_kill_ends_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "shelf://", "--kill"]) == 0
    assert ids_left() == []
    assert capsys.readouterr().out.endswith("2 sandboxes\n")


@pytest.mark.parametrize(
    ("labels", "left"),
    [
        (["tenant_id=acme"], ["two"]),
        (["tenant_id=acme", "run=7"], ["two"]),
        (["tenant_id=acme", "run=8"], ["one", "two"]),
        (["tenant_id="], ["one", "two"]),
    ],
)
def test_labels_narrow_what_is_ended(labels: list[str], left: list[str]) -> None:
    arguments = [argument for label in labels for argument in ("--label", label)]
    assert main(["reap", "--backend", "shelf://", "--kill", *arguments]) == 0
    assert ids_left() == left


def test_one_that_cannot_be_ended_fails_the_command_and_keeps_none_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ShelfBackend.stubborn.add("one")
    assert main(["reap", "--backend", "shelf://", "--kill"]) == 1
    assert ids_left() == ["one"]
    out = capsys.readouterr().out
    assert "FAIL   one" in out
    error = ConnectError("the provider refused\x1b[2J")
    assert f"       [SBX_E1202] {error.message}\n       fix: {error.hint}\n       page: {error.url}\n" in out
    assert "\x1b" not in out
    assert "ended  two" in out


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    ShelfBackend.stubborn.add("one")
    assert main(["reap", "--backend", "shelf://", "--kill", "--json"]) == 1
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document == {
        "killed": True,
        "backends": [{"name": "shelf", "count": 2, "skipped": None, "failure": None}],
        "sandboxes": [
            {
                "id": "one",
                "backend": "shelf",
                "state": "running",
                "created_at": "2026-05-04T03:02:01+00:00",
                "expires_at": "2026-05-04T03:07:01+00:00",
                "metadata": {"tenant_id": "acme", "run": "7"},
                "ended": False,
                "failure": {
                    "code": "SBX_E1202",
                    "message": "the provider refused\ufffd[2J",
                    "hint": ConnectError.default_hint,
                    "url": ConnectError("").url,
                },
            },
            {
                "id": "two",
                "backend": "shelf",
                "state": "exited",
                "created_at": None,
                "expires_at": None,
                "metadata": {"tenant_id": "other"},
                "ended": True,
                "failure": None,
            },
        ],
        "ok": False,
    }


def test_a_dry_run_in_json_says_nothing_of_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "shelf://", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["killed"] is False
    assert all("ended" not in row for row in document["sandboxes"])


def test_nothing_left_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    ShelfBackend.left.clear()
    assert main(["reap", "--backend", "shelf://"]) == 0
    assert capsys.readouterr().out == "nothing was found\n"


def test_a_backend_that_cannot_list_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "bare://"]) == 1
    assert "SBX_E1101" in capsys.readouterr().err


class BrokenBackend(ShelfBackend):
    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        raise ConnectError("no answer", hint="start it")


class OddBackend(ShelfBackend):
    """Raises what is not ours, both ways."""

    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        if not self.stubborn:
            raise RuntimeError("token=hunter2")
        return await super().list_managed()

    async def kill_managed(self, sandbox_id: str) -> None:
        if sandbox_id in self.stubborn:
            raise KeyError("token=hunter2")
        await super().kill_managed(sandbox_id)


class StuckBackend(ShelfBackend):
    async def list_managed(self) -> tuple[ManagedSandbox, ...]:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make exactly these names the installed backends."""

    def install(*names: str) -> None:
        monkeypatch.setattr(sandboxio, "installed_backends", lambda: names)

    return install


def test_without_a_backend_all_installed_ones_are_asked(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("fake", "shelf")
    assert main(["reap", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["count"]) for row in document["backends"]] == [("fake", 0), ("shelf", 2)]
    assert [row["id"] for row in document["sandboxes"]] == ["one", "two"]


def test_one_that_does_not_answer_fails_the_command_and_the_others_are_asked(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    sandboxio.register("broken", f"{__name__}:BrokenBackend")
    install("broken", "shelf")
    assert main(["reap", "--kill"]) == 1
    assert ids_left() == []
    out = capsys.readouterr().out
    assert "FAIL broken: [SBX_E1202] no answer\n       fix: start it\n       page: https://" in out


def test_a_foreign_error_keeps_none_of_the_others_from_being_asked(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    sandboxio.register("odd", f"{__name__}:OddBackend")
    install("odd", "shelf")
    assert main(["reap", "--json"]) == 1
    captured = capsys.readouterr()
    odd, shelf = json.loads(captured.out)["backends"]
    assert odd["failure"]["message"] == "the backend odd failed with RuntimeError"
    assert shelf["count"] == 2
    assert "hunter2" not in captured.out + captured.err


def test_a_foreign_error_of_an_end_keeps_none_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    sandboxio.register("odd", f"{__name__}:OddBackend")
    ShelfBackend.stubborn.add("one")
    assert main(["reap", "--backend", "odd://", "--kill"]) == 1
    assert ids_left() == ["one"]
    out = capsys.readouterr().out
    assert "failed with KeyError" in out
    assert "hunter2" not in out


def test_one_that_hangs_keeps_none_of_the_others(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inventory, "_ANSWER_SECONDS", 0.05)
    sandboxio.register("stuck", f"{__name__}:StuckBackend")
    install("stuck", "shelf")
    assert main(["reap"]) == 1
    out = capsys.readouterr().out
    assert "FAIL stuck: [SBX_E1202] the backend stuck did not answer within 0.05 s\n" in out
    assert "2 sandboxes" in out


@pytest.mark.parametrize(
    ("installed", "left", "summary"),
    [
        (("broken",), True, "no backend answered"),
        (("broken", "shelf"), False, "nothing was found at shelf"),
        (("bare",), True, "no backend was asked"),
        ((), True, "no backend was asked"),
    ],
)
def test_an_empty_list_says_who_answered(
    installed: tuple[str, ...],
    left: bool,
    summary: str,
    install: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not left:
        ShelfBackend.left.clear()
    sandboxio.register("broken", f"{__name__}:BrokenBackend")
    install(*installed)
    main(["reap"])
    assert capsys.readouterr().out.endswith(f"{summary}\n")


def test_one_that_is_not_in_use_here_is_passed_over(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    install("bare", "e2b", "shelf")
    assert main(["reap"]) == 0
    out = capsys.readouterr().out
    assert "e2b was not asked: E2B_API_KEY not set\n" in out
    assert "bare was not asked: the backend shelf cannot list" in out
    assert "2 sandboxes" in out


@pytest.mark.parametrize("label", ["tenant_id", "=acme", ""])
def test_a_label_has_a_name_and_a_value(label: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "shelf://", "--kill", "--label", label]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
    assert ids_left() == ["one", "two"]


def test_a_target_that_means_nothing_is_wrong_usage() -> None:
    assert main(["reap", "--backend", "shelf://?timeout=5", "--kill"]) == 2
    assert ids_left() == ["one", "two"]


def test_the_sandboxes_of_the_fake_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "--backend", "fake://"]) == 0
    assert capsys.readouterr().out == "nothing was found\n"
