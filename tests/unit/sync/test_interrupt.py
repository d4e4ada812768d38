"""Ctrl-C ends what was under way."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time

import pytest

import sandboxio
from sandboxio import SyncSandbox

from .scripted import scripted


def interrupt_when(ready: threading.Event) -> threading.Thread:
    """Send this process the signal of Ctrl-C once the event is set."""

    def interrupt() -> None:
        if ready.wait(10):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


@pytest.mark.parametrize("grace", ["5", "not a number"])
def test_an_interrupt_during_a_call_ends_what_it_had_started(
    grace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", grace)
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert recorded.sandbox is not None
        thread = interrupt_when(recorded.sandbox.hanging)
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("hang")
        assert recorded.log == ["tree ended"]
        thread.join(10)
        assert sandbox.run(["ls"]).ok


def test_an_interrupt_that_wakes_nobody_is_noticed() -> None:
    recorded, backend = scripted()

    def interrupt() -> None:
        assert recorded.sandbox is not None
        if recorded.sandbox.hanging.wait(10):
            time.sleep(0.1)  # until the other thread waits
            _thread.interrupt_main()  # as a signal that arrives just before a thread begins to wait

    thread = threading.Thread(target=interrupt)
    with sandboxio.create_sync(backend) as sandbox:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("hang")
        assert recorded.log == ["tree ended"]
        thread.join(10)


def test_an_interrupt_is_not_kept_waiting_by_a_loop_that_is_blocked() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert recorded.sandbox is not None
        thread = interrupt_when(recorded.sandbox.hanging)
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("block")
        assert recorded.log == []  # the loop is still blocked
        recorded.sandbox.unblocked.set()
        thread.join(10)
        assert sandbox.run(["ls"]).ok
        assert recorded.log == ["unblocked"]


def test_an_interrupt_during_a_creation_undoes_it() -> None:
    recorded, backend = scripted()
    recorded.hang = True
    thread = interrupt_when(recorded.creating)
    with pytest.raises(KeyboardInterrupt):
        sandboxio.create_sync(backend)
    thread.join(10)
    assert recorded.log == ["creation undone"]


def test_an_interrupt_just_after_a_creation_ends_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, backend = scripted()

    def interrupted(self: object, sandbox: object, loop: object, *, owned: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SyncSandbox, "__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sandboxio.create_sync(backend)
    assert recorded.log == ["exit None"]
