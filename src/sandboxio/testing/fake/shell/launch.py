"""How a command finds its program, and the programs that run programs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sandboxio.testing.fake.machine.calls import Body, NotSimulatedError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import PIPE_BYTES
from sandboxio.testing.fake.machine.tree import FileNode, FolderNode
from sandboxio.testing.fake.python.interpreter import run_python
from sandboxio.testing.fake.shell.interpreter import run_text
from sandboxio.testing.fake.shell.program import Program, complaint, error_text
from sandboxio.testing.fake.shell.programs import PROGRAMS

__all__ = ["find_program", "run_command"]

_BIN: Final = ("/bin/", "/usr/bin/")


def run_command(process: Process) -> Body:
    """The program that runs what `process.argv` says, as `exec` does."""
    program = find_program(process, process.argv)
    try:
        return (yield from program(process))
    except BrokenPipeError:
        raise
    except OSError as exc:
        yield from process.write(2, error_text(process.argv[0], exc))
        return 1


def find_program(process: Process, argv: Sequence[str]) -> Program:
    """The program behind a command; where there is none, one that says so and ends with 126 or 127."""
    name = argv[0]
    if "/" not in name:
        return _ALL_PROGRAMS.get(name) or _missing(process, name)
    for prefix in _BIN:
        bare = name.removeprefix(prefix)
        if bare != name and bare in _ALL_PROGRAMS:
            return _ALL_PROGRAMS[bare]
    try:
        node = process.kernel.tree.find(process.path(name))
    except OSError:
        return _missing(process, name)
    if not isinstance(node, FileNode) or not node.mode & 0o111:
        reason = "Is a directory" if isinstance(node, FolderNode) else "Permission denied"
        return complaint(f"sh: {name}: {reason}", 126)
    text = bytes(node.data).decode("utf-8", "surrogateescape")
    if not text.startswith("#!"):
        return complaint(f"sh: {name}: Exec format error", 126)
    interpreter = posixpath.basename(text[2:].split("\n", 1)[0].split(" ")[-1])
    if interpreter in ("sh", "bash"):
        return run_text(text, name, *argv[1:])
    if interpreter == "python3":
        return run_python(text)
    raise NotSimulatedError(f"scripts for {interpreter}")


def _missing(process: Process, name: str) -> Program:
    if process is process.execution.leader:
        process.execution.missing = True
    return complaint(f"sh: {name}: not found", 127)


def _sh(process: Process) -> Body:
    words = process.argv[1:]
    if words[:1] == ["-c"] and len(words) > 1:
        return (yield from run_text(words[1], *words[2:])(process))
    if words in ([], ["-s"], ["-"]):
        source = b""
        while data := (yield from process.read(0, PIPE_BYTES)):
            source += data
        return (yield from run_text(source.decode("utf-8", "surrogateescape"))(process))
    if words[0].startswith("-"):
        raise NotSimulatedError(f"sh {words[0][:40]}")
    node = process.kernel.tree.file(process.path(words[0]))
    return (yield from run_text(bytes(node.data).decode("utf-8", "surrogateescape"), *words)(process))


def _python3(process: Process) -> Body:
    words = process.argv[1:]
    if words[:1] == ["-c"] and len(words) > 1:
        return (yield from run_python(words[1])(process))
    if words in ([], ["-"]):
        source = b""
        while data := (yield from process.read(0, PIPE_BYTES)):
            source += data
        return (yield from run_python(source.decode())(process))
    if words[0].startswith("-"):
        raise NotSimulatedError(f"python3 {words[0][:40]}")
    node = process.kernel.tree.file(process.path(words[0]))
    return (yield from run_python(bytes(node.data).decode())(process))


def _instead(process: Process) -> Body:
    """`setsid`, `nohup`: become the command that follows."""
    process.argv = process.argv[1:]
    if not process.argv:
        return 1
    return (yield from run_command(process))


_ALL_PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        **PROGRAMS,
        "bash": _sh,
        "nohup": _instead,
        "python3": _python3,
        "setsid": _instead,
        "sh": _sh,
    }
)
