"""The synchronous facade."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

import anyio
import pytest

import sandboxio
from sandboxio import (
    AsyncFileSystem,
    AsyncSandbox,
    Backend,
    Capability,
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    CreationError,
    ExecResult,
    IsolationTier,
    OrphanedSandboxWarning,
    OutputChunk,
    PathNotFound,
    Process,
    SandboxGone,
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
        def run(self, cmd: str) -> ExecResult: ...

    assert shape(Narrow.run) != shape(AsyncSandbox.run)


class ScriptedProcess:
    """Writes two chunks."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.written = b""
        self._chunks = [OutputChunk("stdout", b"one"), OutputChunk("stderr", b"two")]

    async def wait(self) -> ExecResult:
        self._chunks.clear()
        self.returncode = 0
        return ExecResult(0, "", "", streamed=True)

    async def kill(self) -> None:
        self.returncode = 137

    async def write(self, data: bytes | str) -> None:
        self.written += data.encode() if isinstance(data, str) else data

    async def close_stdin(self) -> None:
        self.written += b"<end>"

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        return self

    async def __anext__(self) -> OutputChunk:
        await anyio.lowlevel.checkpoint()
        if not self._chunks:
            await self.wait()
            raise StopAsyncIteration
        return self._chunks.pop(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self.returncode is None:
            await self.kill()


class ScriptedFiles:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> object:
            await anyio.lowlevel.checkpoint()
            self.calls.append((name, *args, kwargs))
            if "missing" in args:
                raise PathNotFound("missing is not there") from KeyError("missing")
            return {"read": b"data", "exists": True, "ls": ()}.get(name)

        return call


class ScriptedSandbox:
    """Says what happens to it."""

    id = "abc"
    backend = "scripted"
    capabilities = Capability.RUN_COMMAND
    isolation = IsolationTier.CONTAINER
    metadata: ClassVar[Mapping[str, str]] = {"a": "b"}
    native = "the native object"

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.files = ScriptedFiles()
        self.process = ScriptedProcess()
        self.thread = threading.current_thread().name
        self.hanging = threading.Event()
        self.unblocked = threading.Event()
        self.enter_error: Exception | None = None

    def __repr__(self) -> str:
        return "<Sandbox scripted:abc>"

    async def run(self, cmd: Any, **options: Any) -> ExecResult:
        await anyio.lowlevel.checkpoint()
        if cmd == "hang":
            try:
                self.hanging.set()
                await anyio.sleep_forever()
            finally:
                self.log.append("tree ended")
        if cmd == "block":  # as foreign code does that waits without `await`
            self.hanging.set()
            self.unblocked.wait(30)
            self.log.append("unblocked")
        if callable(cmd):
            cmd()
        if cmd == "fail":
            try:
                raise OSError("reset")
            except OSError as exc:
                raise ConnectError("no answer") from exc
        return ExecResult(0, f"{cmd} {options}", "")

    async def run_code(self, code: str, **options: Any) -> ExecResult:
        return ExecResult(0, f"{code} {options}", "")

    def stream(self, cmd: Any, **options: Any) -> ScriptedProcess:
        return self.process

    async def kill(self) -> None:
        self.log.append("kill")

    async def detach(self) -> str:
        self.log.append("detach")
        return self.id

    async def __aenter__(self) -> Self:
        if self.enter_error is not None:
            raise self.enter_error
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.log.append(f"exit {exc_type.__name__ if exc_type else None}")


class ScriptedBackend:
    name = "scripted"
    capabilities = Capability.RUN_COMMAND
    isolation = IsolationTier.CONTAINER

    def __init__(self, create_fails: BaseException | None = None) -> None:
        self.create_fails = create_fails
        self.log: list[str] = []
        self.sandbox: ScriptedSandbox | None = None
        self.creating = threading.Event()
        self.hang = False

    async def create(self, **request: Any) -> ScriptedSandbox:
        await anyio.lowlevel.checkpoint()
        if self.create_fails is not None:
            raise self.create_fails
        if self.hang:
            self.creating.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.log.append("creation undone")
        self.sandbox = ScriptedSandbox(self.log)
        return self.sandbox

    async def connect(self, sandbox_id: str) -> ScriptedSandbox:
        if sandbox_id != "abc":
            raise SandboxGone(f"there is no {sandbox_id}")
        self.sandbox = ScriptedSandbox(self.log)
        return self.sandbox


def scripted() -> tuple[ScriptedBackend, Backend]:
    backend = ScriptedBackend()
    return backend, cast("Backend", backend)


def our_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sandboxio-sync"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    assert our_threads() == []
    yield
    assert our_threads() == []


def test_calls_and_properties_are_handed_on() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert (sandbox.id, sandbox.backend, sandbox.native) == ("abc", "scripted", "the native object")
        assert (sandbox.isolation, sandbox.metadata) == (IsolationTier.CONTAINER, {"a": "b"})
        assert sandbox.capabilities == Capability.RUN_COMMAND
        assert repr(sandbox) == "<SyncSandbox of <Sandbox scripted:abc>>"
        run = sandbox.run(["ls"], timeout=1, env={"A": "1"}, cwd="/", stdin=b"in")
        assert run.stdout == "['ls'] {'timeout': 1, 'env': {'A': '1'}, 'cwd': '/', 'stdin': b'in'}"
        code = sandbox.run_code("x", language="sh", context_id="c", timeout=1, env={})
        assert code.stdout == "x {'language': 'sh', 'context_id': 'c', 'timeout': 1, 'env': {}}"


def test_the_loop_runs_in_a_thread_of_the_sandbox() -> None:
    first, first_backend = scripted()
    _, second_backend = scripted()
    with sandboxio.create_sync(first_backend), sandboxio.create_sync(second_backend):
        assert len(our_threads()) == 2
        assert first.sandbox is not None
        assert first.sandbox.thread == "sandboxio-sync"


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


def test_an_error_is_the_same_with_its_cause() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox, pytest.raises(ConnectError, match="no answer") as caught:
        sandbox.run("fail")
    assert isinstance(caught.value.__cause__, OSError)


def test_a_stream_is_read_as_it_comes() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        with sandbox.stream(["make"]) as process:
            assert process.returncode is None
            process.write("in")
            process.close_stdin()
            assert [chunk.data for chunk in process] == [b"one", b"two"]
            assert process.returncode == 0
            assert process.wait().streamed
        assert recorded.sandbox is not None
        assert recorded.sandbox.process.written == b"in<end>"


def test_a_stream_that_is_left_early_is_ended() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        with sandbox.stream(["make"]) as process:
            next(iter(process))
        assert process.returncode == 137
        assert "SyncProcess" in repr(process)


def test_a_process_can_be_killed() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox, sandbox.stream(["make"]) as process:
        process.kill()
        assert process.returncode == 137


def test_files_are_handed_on() -> None:
    recorded, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        files = sandbox.files
        files.write("a", b"1")
        assert files.read("a") == b"data"
        files.upload("here", "there")
        files.download("there", "here")
        assert files.ls() == ()
        files.mkdir("d", parents=True)
        files.remove("d", recursive=True)
        assert files.exists("a") is True
        files.stat("a")
        files.rename("a", "b")
        with pytest.raises(PathNotFound) as caught:
            files.read("missing")
        assert isinstance(caught.value.__cause__, KeyError)
        assert "SyncFileSystem" in repr(files)
    assert recorded.sandbox is not None
    assert recorded.sandbox.files.calls == [
        ("write", "a", b"1", {}),
        ("read", "a", {}),
        ("upload", "here", "there", {}),
        ("download", "there", "here", {}),
        ("ls", ".", {}),
        ("mkdir", "d", {"parents": True}),
        ("remove", "d", {"recursive": True}),
        ("exists", "a", {}),
        ("stat", "a", {}),
        ("rename", "a", "b", {}),
        ("read", "missing", {}),
    ]


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


def test_arguments_are_checked_as_for_create() -> None:
    _, backend = scripted()
    with pytest.raises(ConfigurationError, match="timeout"):
        sandboxio.create_sync(backend, timeout=0)
    with pytest.raises(CapabilityNotSupported):
        sandboxio.create_sync(backend, require_isolation=IsolationTier.MICROVM)


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


def test_several_threads_share_a_sandbox() -> None:
    _, backend = scripted()
    outputs: list[str] = []
    with sandboxio.create_sync(backend) as sandbox:
        threads = [
            threading.Thread(target=lambda n=number: outputs.append(sandbox.run(str(n)).stdout[:1]))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert sorted(outputs) == [str(number) for number in range(8)]


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
                sandbox.run(break_down)
            wait_until(lambda: our_threads() == [])
            with pytest.raises(SandboxGone, match="closed"):
                sandbox.run(["ls"])

    with pytest.warns(OrphanedSandboxWarning, match="abc may still run: the loop that held it has ended"):
        use()
    assert capfd.readouterr().err == ""


def test_a_thread_that_cannot_be_had_is_a_creation_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(anyio, "run", refuse)
    _, backend = scripted()
    with pytest.raises(CreationError, match="event loop could not be started") as caught:
        sandboxio.create_sync(backend)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_call_from_its_own_loop_is_refused_instead_of_hanging() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        with pytest.raises(ConfigurationError, match="its own loop"):
            sandbox.run(cast("Any", lambda: sandbox.run(["ls"])))
        assert sandbox.run(["ls"]).ok


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


def test_a_forgotten_sandbox_gives_its_thread_back_and_is_told() -> None:
    recorded, backend = scripted()
    with pytest.warns(ResourceWarning, match="the scripted sandbox abc was never closed"):
        sandboxio.create_sync(backend)  # collected at once
    wait_until(lambda: our_threads() == [])
    assert recorded.log == []


def test_a_part_of_a_sandbox_keeps_its_thread() -> None:
    _, backend = scripted()
    files = sandboxio.create_sync(backend).files
    assert files.read("a") == b"data"
    with pytest.warns(ResourceWarning):
        del files
    wait_until(lambda: our_threads() == [])


def test_nobody_waits_for_the_thread_of_a_forgotten_sandbox() -> None:
    _, backend = scripted()
    sandbox = sandboxio.create_sync(backend)
    unblocked = threading.Event()
    sandbox._loop._state._soon(lambda: unblocked.wait(30))
    with pytest.warns(ResourceWarning):
        del sandbox
    assert len(our_threads()) == 1
    unblocked.set()
    wait_until(lambda: our_threads() == [])


@pytest.mark.parametrize(
    ("warnings", "told"),
    [("default::UserWarning", ""), ("default", "the scripted sandbox abc was never closed")],
)
def test_an_open_sandbox_does_not_keep_the_interpreter_from_exiting(warnings: str, told: str) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_sync as test, sandboxio\n"
        "sandbox = sandboxio.create_sync(test.scripted()[1])\n"
        "print(sandbox.run('x').ok)\n"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", program, folder], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "True\n")
    assert told in done.stderr
    assert told or not done.stderr


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


async def test_it_works_where_a_loop_is_running() -> None:
    _, backend = scripted()
    with sandboxio.create_sync(backend) as sandbox:
        assert sandbox.run(["ls"]).ok


def test_the_fake_is_used_without_async() -> None:
    with sandboxio.create_sync("fake://") as sandbox:
        sandbox.files.write("a.txt", "one\ntwo\n")
        with sandbox.stream(["cat", "a.txt"]) as process:
            assert b"".join(chunk.data for chunk in process) == b"one\ntwo\n"
        assert sandbox.run_code("print(6 * 7)").raise_for_status().stdout == "42\n"
        with pytest.raises(sandboxio.ExecutionTimeout) as caught:
            sandbox.run("echo begun; sleep 60", timeout=1)
    assert caught.value.partial.stdout == "begun\n"
    sandbox.kill()
