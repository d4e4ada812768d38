"""How a handle ends: by its context, by `kill`, by `detach`, or before it is there."""

from __future__ import annotations

import threading

import pytest

import sandboxio
from sandboxio import ConnectError, SandboxGone, SyncSandbox

from .scripted import ScriptedSandbox, scripted
from .threads import our_threads


def test_leaving_the_context_leaves_the_asynchronous_one() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend):
        pass
    assert recorded.log == ["exit None"]


def test_an_error_in_the_block_reaches_the_asynchronous_exit() -> None:
    recorded, backend = scripted()
    with pytest.raises(ZeroDivisionError), sandboxio.create_sync(backend):
        raise ZeroDivisionError
    assert recorded.log == ["exit ZeroDivisionError"]


def test_kill_and_detach_are_handed_on() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert sandbox.detach() == "abc"
        sandbox.kill()
    assert recorded.log == ["detach", "kill", "exit None"]


def test_kill_without_a_block_ends_the_thread_too() -> None:
    recorded, backend = scripted()
    sandbox = sandboxio.create_sync(backend)
    sandbox.kill()
    assert our_threads() == []
    sandbox.kill()
    assert recorded.log == ["kill"]
    with pytest.raises(SandboxGone, match="closed"):
        sandbox.run(["ls"])


def test_detach_without_a_block_ends_the_thread_and_not_the_sandbox() -> None:
    recorded, backend = scripted()
    sandbox = sandboxio.create_sync(backend)
    assert sandbox.detach() == "abc"
    assert our_threads() == []
    assert recorded.log == ["detach"]
    with pytest.raises(SandboxGone, match="closed"):  # it lives, so a silent success would be a lie
        sandbox.kill()


def test_a_kill_after_the_block_does_nothing() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        pass
    sandbox.kill()
    assert recorded.log == ["exit None"]


def test_a_kill_after_the_block_of_a_connected_one_says_that_it_cannot() -> None:
    _, backend = scripted()
    with sandboxio.connect_sync(backend, "abc") as sandbox:
        pass
    with pytest.raises(SandboxGone, match="closed"):
        sandbox.kill()


def test_a_kill_that_fails_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, backend = scripted()
    sandbox = sandboxio.create_sync(backend)

    async def refuse(self: object) -> None:
        raise ConnectError("the provider refused")

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedSandbox, "kill", refuse)
        with pytest.raises(ConnectError):
            sandbox.kill()
    sandbox.kill()
    assert recorded.log == ["kill"]


def test_a_context_that_cannot_be_entered_ends_the_sandbox_and_the_thread() -> None:
    recorded, backend = scripted()
    sandbox = sandboxio.create_sync(backend)
    assert recorded.sandbox is not None
    recorded.sandbox.enter_error = ConnectError("no")
    with pytest.raises(ConnectError, match="no"), sandbox:
        pass
    assert recorded.log == ["kill"]
    assert our_threads() == []


@pytest.mark.parametrize("error", [ConnectError("no engine"), RuntimeError("a bug")])
def test_a_creation_that_fails_leaves_no_thread(error: Exception) -> None:
    recorded, backend = scripted()
    recorded.create_fails = error
    with pytest.raises(type(error)):
        sandboxio.create_sync(backend)
    assert our_threads() == []


def test_a_connection_that_fails_leaves_no_thread() -> None:
    _, backend = scripted()
    with pytest.raises(SandboxGone, match="there is no xyz"):
        sandboxio.connect_sync(backend, "xyz")


def test_a_handle_that_was_closed_says_so() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        pass
    with pytest.raises(SandboxGone, match="closed"):
        sandbox.run(["ls"])


def test_a_call_that_the_end_of_the_handle_cuts_off_says_so() -> None:
    recorded, backend = scripted()
    errors: list[BaseException] = []

    def hang(sandbox: SyncSandbox) -> None:
        try:
            sandbox.run("hang")
        except SandboxGone as exc:
            errors.append(exc)

    with sandboxio.create_sync(backend) as sandbox:
        thread = threading.Thread(target=hang, args=(sandbox,))
        thread.start()
        assert recorded.sandbox is not None
        assert recorded.sandbox.hanging.wait(10)
    thread.join(10)
    assert [type(error) for error in errors] == [SandboxGone]
    assert "tree ended" in recorded.log
