"""Programs about files and folders. An option that one does not have here is refused, never ignored."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sandboxio.testing.fake.machine.calls import Body, NotSimulatedError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.tree import FifoNode, FileNode, FolderNode, LinkNode
from sandboxio.testing.fake.shell.program import Program, error_text, operands, options, two_operands

__all__ = ["FILE_PROGRAMS"]


def _ls(process: Process) -> Body:
    given, names = options(process, "a1A", "")
    failed = 0
    for name in names or ["."]:
        try:
            node = process.kernel.tree.find(process.path(name))
        except OSError as exc:
            exc.filename = name
            yield from process.write(2, error_text("ls", exc))
            failed = 2
            continue
        entries = sorted(node.entries) if isinstance(node, FolderNode) else [name]
        shown = [entry for entry in entries if given.keys() & {"a", "A"} or not entry.startswith(".")]
        yield from process.write(1, "".join(f"{entry}\n" for entry in shown).encode())
    return failed


def _mkdir(process: Process) -> Body:
    given, names = options(process, "p", "")
    for name in names:
        process.kernel.tree.make_folder(process.path(name), parents="p" in given)
    yield from ()
    return 0


def _rm(process: Process) -> Body:
    given, names = options(process, "rRf", "")
    recursive = bool(given.keys() & {"r", "R"})
    for name in names:
        try:
            process.kernel.tree.remove(process.path(name), recursive=recursive)
        except FileNotFoundError:
            if "f" not in given:
                raise
    yield from ()
    return 0


def _target(process: Process, source: str, target: str) -> str:
    """Where a copy or a move goes: into a directory, or to the name itself."""
    full = process.path(target)
    try:
        process.kernel.tree.folder(full)
    except OSError:
        return full
    return posixpath.join(full, posixpath.basename(source.rstrip("/")))


def _mv(process: Process) -> Body:
    source, target = two_operands(process, "f")
    process.kernel.tree.rename(process.path(source), _target(process, source, target))
    yield from ()
    return 0


def _cp(process: Process) -> Body:
    source, target = two_operands(process, "f")
    node = process.kernel.tree.file(process.path(source))
    process.kernel.tree.replace(_target(process, source, target), bytes(node.data), node.mode)
    yield from ()
    return 0


def _touch(process: Process) -> Body:
    for name in operands(process, ""):
        node = process.kernel.tree.open_file(process.path(name))
        node.mtime = process.kernel.clock()
    yield from ()
    return 0


def _ln(process: Process) -> Body:
    given, names = options(process, "s", "")
    if "s" not in given or len(names) != 2:
        raise NotSimulatedError("ln other than ln -s TARGET NAME")
    process.kernel.tree.make_node(process.path(names[1]), LinkNode(names[0]))
    yield from ()
    return 0


def _mkfifo(process: Process) -> Body:
    for name in operands(process, ""):
        process.kernel.tree.make_node(process.path(name), FifoNode())
    yield from ()
    return 0


def _chmod(process: Process) -> Body:
    mode, *names = operands(process, "")
    for name in names:
        node = process.kernel.tree.find(process.path(name))
        if mode == "+x":
            node.mode |= 0o111
        elif re.fullmatch("[0-7]{3,4}", mode):
            node.mode = int(mode, 8)
        else:
            raise NotSimulatedError(f"chmod {mode}")
    yield from ()
    return 0


def _test(process: Process) -> Body:
    words = process.argv[1:]
    if process.argv[0] == "[":
        if words[-1:] != ["]"]:
            yield from process.write(2, b"[: missing ]\n")
            return 2
        words = words[:-1]
    yield from ()
    negated = words[:1] == ["!"]
    return int(_holds(process, words[1:] if negated else words) is negated)


def _holds(process: Process, words: Sequence[str]) -> bool:
    if len(words) <= 1:
        return bool(words and words[0])
    if len(words) == 3:
        left, operator, right = words
        if operator in ("=", "==", "!="):
            return (left == right) is (operator != "!=")
        numbers = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
        if operator in numbers:
            first, second = int(left), int(right)
            return {
                "==": first == second,
                "!=": first != second,
                "<": first < second,
                "<=": first <= second,
                ">": first > second,
                ">=": first >= second,
            }[numbers[operator]]
    if len(words) == 2 and words[0] in ("-n", "-z"):
        return bool(words[1]) is (words[0] == "-n")
    if len(words) == 2 and words[0] in ("-e", "-f", "-d", "-x", "-s", "-L"):
        return _file_holds(process, words[0], words[1])
    raise NotSimulatedError(f"test {' '.join(words)[:40]}")


def _file_holds(process: Process, operator: str, name: str) -> bool:
    try:
        node = process.kernel.tree.find(process.path(name), follow=operator != "-L")
    except OSError:
        return False
    return {
        "-e": True,
        "-f": isinstance(node, FileNode),
        "-d": isinstance(node, FolderNode),
        "-x": bool(node.mode & 0o111),
        "-s": isinstance(node, FileNode) and bool(node.data),
        "-L": isinstance(node, LinkNode),
    }[operator]


FILE_PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        "[": _test,
        "chmod": _chmod,
        "cp": _cp,
        "ln": _ln,
        "ls": _ls,
        "mkdir": _mkdir,
        "mkfifo": _mkfifo,
        "mv": _mv,
        "rm": _rm,
        "test": _test,
        "touch": _touch,
    }
)
