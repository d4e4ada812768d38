"""The modules that code can import, each with the few things of it that the fake has."""

from __future__ import annotations

import json
import math
import posixpath
import re
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Block, Call, NotSimulatedError, Sleep, Wait
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import (
    PIPE_BYTES,
    Channel,
    NullDevice,
    Pipe,
    PipeReader,
    PipeWriter,
)
from sandboxio.testing.fake.python.builtin_names import leave
from sandboxio.testing.fake.python.things import Native, Thing, natives, nothing

__all__ = ["import_module"]

Value = Generator[Call, Any, Any]

_CAPTURE: Final = 62
_URL: Final = re.compile(r"(https?)://(\[[^]]+\]|[^/:]+)(?::(\d+))?(?:/.*)?")


def import_module(process: Process, name: str) -> Thing:
    """A module by its full name.

    Raises:
        NotSimulatedError: The fake does not have it.
    """
    make = _MODULES.get(name)
    if make is None:
        raise NotSimulatedError(f"Python's module {name}")
    return Thing(name, make(process))


def _sys(process: Process) -> dict[str, Any]:
    def _read() -> Value:
        return (yield from _read_all(process, 0)).decode()

    return {
        "exit": Native("exit", leave),
        "stdin": Thing("sys.stdin", natives(_read)),
        "stdout": _output(process, "sys.stdout", 1),
        "stderr": _output(process, "sys.stderr", 2),
        "argv": ["-"],
    }


def _output(process: Process, name: str, descriptor: int) -> Thing:
    def _write(text: str) -> Value:
        yield from process.write(descriptor, text.encode())
        return len(text)

    def write_bytes(data: bytes) -> Value:
        yield from process.write(descriptor, data)
        return len(data)

    flush = Native("flush", nothing)
    raw = Thing(f"{name}.buffer", {"write": Native("write", write_bytes), "flush": flush})
    return Thing(name, natives(_write) | {"flush": flush, "buffer": raw})


def _os(process: Process) -> dict[str, Any]:
    def _getcwd() -> str:
        return process.folder

    def _getpid() -> int:
        return process.pid

    def _getenv(name: str, default: str | None = None) -> str | None:
        return process.variables.get(name, default)

    names = natives(_getcwd, _getpid, _getenv) | _os_files(process)
    return names | {"environ": process.variables, "kill": Native("kill", process.signal)}


def _os_files(process: Process) -> dict[str, Any]:
    tree = process.kernel.tree

    def _exists(path: str) -> bool:
        try:
            tree.find(process.path(path))
        except OSError:
            return False
        return True

    def _listdir(path: str = ".") -> list[str]:
        return list(tree.folder(process.path(path)).entries)

    def _remove(path: str) -> None:
        tree.remove(process.path(path), recursive=False)

    def _mkdir(path: str) -> None:
        tree.make_folder(process.path(path))

    def _makedirs(path: str, exist_ok: bool = False) -> None:
        if tree.exists(process.path(path)) and not exist_ok:
            raise FileExistsError(f"File exists: {path!r}")
        tree.make_folder(process.path(path), parents=True)

    paths = natives(_exists, posixpath.basename, posixpath.dirname) | {"join": Native("join", posixpath.join)}
    return natives(_listdir, _remove, _mkdir, _makedirs) | {"path": Thing("os.path", paths)}


def _time(process: Process) -> dict[str, Any]:
    def _sleep(seconds: float) -> Value:
        yield Sleep(float(seconds))

    clock = process.kernel.clock
    return natives(_sleep) | {"time": Native("time", clock), "monotonic": Native("monotonic", clock)}


def _signal(process: Process) -> dict[str, Any]:
    def _pause() -> Value:
        yield Block()

    numbers: dict[str, Any] = {item.name: int(item) for item in signal.Signals}
    return numbers | natives(_pause)


def _subprocess(process: Process) -> dict[str, Any]:
    def _run(
        args: str | Sequence[str],
        *,
        shell: bool = False,
        capture_output: bool = False,
        text: bool = False,
        check: bool = False,
        start_new_session: bool = False,  # a tree is one here, whatever sessions are made in it
    ) -> Value:
        argv = ["sh", "-c", str(args)] if shell else list(args)
        captured = (None, None)
        if capture_output:
            code, captured = yield from _captured(process, argv, text=text)
        else:
            child = process.spawn(argv, channels={**process.channels, 0: NullDevice()})
            code = yield Wait([child])
        if check and code:
            raise RuntimeError(f"Command {argv} returned non-zero exit status {code}.")
        return Thing("CompletedProcess", {"returncode": code, "stdout": captured[0], "stderr": captured[1]})

    return natives(_run)


def _captured(process: Process, argv: Sequence[str], *, text: bool) -> Value:
    """Run a child to its end, and give its exit code and what it wrote to each stream."""
    channels: dict[int, Channel] = {0: NullDevice()}
    readers: list[PipeReader] = []
    for descriptor in (1, 2):
        pipe = Pipe()
        channels[descriptor] = PipeWriter(pipe)
        readers.append(PipeReader(pipe))
        readers[-1].open()
    child = process.spawn(argv, channels=channels)
    captured: list[bytes | str] = []
    for reader in readers:
        process.channels[_CAPTURE] = reader
        data = yield from _read_all(process, _CAPTURE)
        captured.append(data.decode() if text else data)
    del process.channels[_CAPTURE]
    code: int = yield Wait([child])
    return code, captured


def _read_all(process: Process, descriptor: int) -> Generator[Call, Any, bytes]:
    data = b""
    while chunk := (yield from process.read(descriptor, PIPE_BYTES)):
        data += chunk
    return data


def _socket(process: Process) -> dict[str, Any]:
    def _create_connection(address: tuple[str, int], timeout: float | None = None) -> Thing:
        process.kernel.network.connect(*address)
        return Thing("socket", {"close": Native("close", nothing), "sendall": Native("sendall", nothing)})

    return natives(_create_connection)


def _urllib_request(process: Process) -> dict[str, Any]:
    def _urlopen(url: str, timeout: float | None = None) -> Thing:
        from urllib.error import URLError

        found = _URL.fullmatch(url)
        if found is None:
            raise ValueError(f"unknown url type: {url!r}")
        port = int(found[3] or (443 if found[1] == "https" else 80))
        try:
            body = process.kernel.network.connect(found[2], port).body
        except OSError as exc:
            raise URLError(exc) from exc

        def _read(size: int = -1) -> bytes:
            return body if size < 0 else body[:size]

        return Thing("response", natives(_read) | {"status": 200, "close": Native("close", nothing)})

    return natives(_urlopen)


def _urllib_error(process: Process) -> dict[str, Any]:
    from urllib.error import URLError

    return {"URLError": URLError}


def _urllib(process: Process) -> dict[str, Any]:
    names = ("request", "error")
    return {name: import_module(process, f"urllib.{name}") for name in names}


def _json(process: Process) -> dict[str, Any]:
    return natives(json.dumps, json.loads)


def _math(process: Process) -> dict[str, Any]:
    functions = natives(math.sqrt, math.floor, math.ceil, math.sin, math.cos, math.log, math.gcd)
    return functions | {"pi": math.pi, "e": math.e}


_MODULES: Final[Mapping[str, Callable[[Process], dict[str, Any]]]] = MappingProxyType(
    {
        "json": _json,
        "math": _math,
        "os": _os,
        "signal": _signal,
        "socket": _socket,
        "subprocess": _subprocess,
        "sys": _sys,
        "time": _time,
        "urllib": _urllib,
        "urllib.error": _urllib_error,
        "urllib.request": _urllib_request,
    }
)
