"""Calls, streams, files and errors are those of the asynchronous sandbox."""

from __future__ import annotations

import pytest

import sandboxio
from sandboxio import (
    Capability,
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    IsolationTier,
    PathNotFound,
)

from .scripted import scripted


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


def test_arguments_are_checked_as_for_create() -> None:
    _, backend = scripted()
    with pytest.raises(ConfigurationError, match="timeout"):
        sandboxio.create_sync(backend, timeout=0)
    with pytest.raises(CapabilityNotSupported):
        sandboxio.create_sync(backend, require_isolation=IsolationTier.MICROVM)


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
        ("read", "a", {"max_bytes": None}),
        ("upload", "here", "there", {}),
        ("download", "there", "here", {}),
        ("ls", ".", {}),
        ("mkdir", "d", {"parents": True}),
        ("remove", "d", {"recursive": True}),
        ("exists", "a", {}),
        ("stat", "a", {}),
        ("rename", "a", "b", {}),
        ("read", "missing", {"max_bytes": None}),
    ]


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
