"""The first import of an adapter, which can take a second, holds no event loop up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import sandboxio
from sandboxio import BackendNotInstalled

from .recording import RecordingBackend

SLOW = """
import sandboxio_test_gate
from {recording} import RecordingBackend
sandboxio_test_gate.reached.set()
sandboxio_test_gate.opened.wait(30)
"""


class Gate:
    """A module that another module waits for while it is imported."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    async def until_reached(self) -> None:
        with anyio.fail_after(10):
            while not self.reached.is_set():
                await anyio.sleep(0.005)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    source = SLOW.format(recording=RecordingBackend.__module__)
    (tmp_path / "sandboxio_test_adapter.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "sandboxio_test_gate", gate)  # type: ignore[arg-type]
    sandboxio.register("slow", "sandboxio_test_adapter:RecordingBackend")
    yield gate
    gate.opened.set()
    sys.modules.pop("sandboxio_test_adapter", None)


async def test_others_run_while_an_adapter_is_imported(gate: Gate) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxio.create, "slow://")
        await gate.until_reached()
        assert RecordingBackend.made == []
        gate.opened.set()
    assert [backend.log for backend in RecordingBackend.made] == [["create"]]


async def test_connect_imports_beside_the_loop_too(gate: Gate) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxio.connect, "slow://", "sandbox-1")
        await gate.until_reached()
        assert RecordingBackend.made == []
        gate.opened.set()
    assert [backend.log for backend in RecordingBackend.made] == [["connect sandbox-1"]]


async def test_a_cancelled_create_does_not_wait_for_the_import(gate: Gate) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxio.create, "slow://")
        await gate.until_reached()
        group.cancel_scope.cancel()
    assert not gate.opened.is_set()
    assert RecordingBackend.made == []


async def test_an_import_that_fails_is_the_same_error_as_ever(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "sandboxio_test_broken.py").write_text(
        "raise RuntimeError('half installed')", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sandboxio.register("broken", "sandboxio_test_broken:Backend")
    with pytest.raises(BackendNotInstalled, match="half installed"):
        await sandboxio.create("broken://")
