"""The thread with the event loop: who may call it, and what breaks it."""

from __future__ import annotations

import os
import threading
from typing import Any, cast

import anyio
import pytest

import sandboxio
from sandboxio import ConfigurationError, CreationError, OrphanedSandboxWarning, SandboxGone, SyncSandbox

from .scripted import scripted
from .threads import our_threads, wait_until


def test_the_loop_runs_in_a_thread_of_the_sandbox() -> None:
    first, first_backend = scripted()
    _, second_backend = scripted()
    with sandboxio.create_sync(first_backend), sandboxio.create_sync(second_backend):
        assert len(our_threads()) == 2
        assert first.sandbox is not None
        assert first.sandbox.thread == "sandboxio-sync"


def test_several_threads_share_a_sandbox() -> None:
    _, backend = scripted()
    outputs: list[str] = []

    def use(sandbox: SyncSandbox, number: int) -> None:
        outputs.append(sandbox.run(str(number)).stdout[:1])

    with sandboxio.create_sync(backend) as sandbox:
        threads = [threading.Thread(target=use, args=(sandbox, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert sorted(outputs) == [str(number) for number in range(8)]


async def test_it_works_where_a_loop_is_running() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert sandbox.run(["ls"]).ok


def test_a_call_from_its_own_loop_is_refused_instead_of_hanging() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        with pytest.raises(ConfigurationError, match="its own loop"):
            sandbox.run(cast("Any", lambda: sandbox.run(["ls"])))
        assert sandbox.run(["ls"]).ok


def test_a_thread_that_cannot_be_had_is_a_creation_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(anyio, "run", refuse)
    _, backend = scripted()
    with pytest.raises(CreationError, match="event loop could not be started") as caught:
        sandboxio.create_sync(backend)
    assert isinstance(caught.value.__cause__, OSError)


class Fatal(BaseException):
    """What no handler for ordinary errors stops."""


@pytest.mark.parametrize("error", [Fatal(), SystemExit(3), KeyboardInterrupt()])
def test_what_breaks_the_loop_reaches_the_caller_and_is_printed_nowhere(
    error: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    _, backend = scripted()

    def break_down() -> None:
        raise error

    def use() -> None:
        with sandboxio.create_sync(backend) as sandbox:
            with pytest.raises(type(error)):
                sandbox.run(cast("Any", break_down))
            wait_until(lambda: our_threads() == [])
            with pytest.raises(SandboxGone, match="closed"):
                sandbox.run(["ls"])

    with pytest.warns(OrphanedSandboxWarning, match="abc may still run: the loop that held it has ended"):
        use()
    assert capfd.readouterr().err == ""


def test_a_loop_that_broke_is_not_used_while_its_thread_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, backend = scripted()

    def break_down() -> None:
        raise Fatal

    def use() -> None:
        with sandboxio.create_sync(backend) as sandbox:
            with pytest.raises(Fatal):
                sandbox.run(cast("Any", break_down))
            wait_until(lambda: our_threads() == [])
            monkeypatch.setattr(threading.Thread, "is_alive", lambda self: True)

    with pytest.warns(OrphanedSandboxWarning, match="the loop that held it has ended"):
        use()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_told_instead_of_hanging() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        child = os.fork()
        if child == 0:
            try:
                sandbox.run(["ls"])
            except ConfigurationError:
                os._exit(42)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
