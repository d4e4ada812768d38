"""The synchronous facade has what the asynchronous API has, with the same arguments."""

from __future__ import annotations

import inspect
from typing import Any, cast

import pytest

import sandboxio
from sandboxio import (
    AsyncFileSystem,
    AsyncSandbox,
    ExecResult,
    Process,
    SyncFileSystem,
    SyncProcess,
    SyncSandbox,
)

PAIRS = [(AsyncSandbox, SyncSandbox), (Process, SyncProcess), (AsyncFileSystem, SyncFileSystem)]
SYNC_NAMES = {
    "AsyncSandbox": "SyncSandbox",
    "AsyncFileSystem": "SyncFileSystem",
    "Process": "SyncProcess",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}


def public_members(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if (not name.startswith("_") or name in SYNC_NAMES or name in SYNC_NAMES.values())
        and (callable(member) or isinstance(member, property))
    }


def in_sync_words(annotation: object) -> str:
    words = str(annotation)
    for asynchronous, synchronous in SYNC_NAMES.items():
        if not words.startswith("Sync"):
            words = words.replace(asynchronous, synchronous)
    return words


def shape(member: Any) -> list[tuple[str, object, object, str]] | str:
    if isinstance(member, property):
        return in_sync_words(inspect.signature(cast("Any", member.fget)).return_annotation)
    signature = inspect.signature(member)
    parameters = [(p.name, p.kind, p.default, str(p.annotation)) for p in signature.parameters.values()]
    return [*parameters, ("return", None, None, in_sync_words(signature.return_annotation))]


@pytest.mark.parametrize(("asynchronous", "synchronous"), PAIRS)
def test_every_member_has_its_synchronous_twin(asynchronous: type, synchronous: type) -> None:
    wanted = {
        SYNC_NAMES.get(name, name): shape(member) for name, member in public_members(asynchronous).items()
    }
    present = {name: shape(member) for name, member in public_members(synchronous).items()}
    assert wanted
    assert present == wanted


@pytest.mark.parametrize("name", ["create", "connect"])
def test_the_entry_points_have_the_same_arguments(name: str) -> None:
    asynchronous = inspect.signature(getattr(sandboxio, name))
    synchronous = inspect.signature(getattr(sandboxio, f"{name}_sync"))
    assert synchronous.parameters == asynchronous.parameters
    assert synchronous.return_annotation == "SyncSandbox"


def test_a_difference_would_be_noticed() -> None:
    class Narrow:
        def run(self, cmd: str) -> ExecResult:
            return ExecResult(0, cmd, "")

    assert shape(Narrow.run) != shape(AsyncSandbox.run)
