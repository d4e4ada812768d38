"""Programs that write and read text. An option that one does not have here is refused, never ignored."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Block, Body, Call, NotSimulatedError, OutOfMemoryError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import PIPE_BYTES, ZeroDevice
from sandboxio.testing.fake.shell.program import (
    MIB,
    Program,
    chunk,
    inputs,
    open_to_write,
    operands,
    options,
    size_of,
)

__all__ = ["TEXT_PROGRAMS"]

Steps = Generator[Call, Any, None]

_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
}


def _echo(process: Process) -> Body:
    words = process.argv[1:]
    newline = "\n"
    if words[:1] == ["-n"]:
        words, newline = words[1:], ""
    yield from process.write(1, (" ".join(words) + newline).encode("utf-8", "surrogateescape"))
    return 0


def _printf(process: Process) -> Body:
    if len(process.argv) < 2:
        yield from process.write(2, b"printf: usage: printf format [arguments]\n")
        return 2
    form, arguments = process.argv[1], process.argv[2:]
    output = b""
    while True:
        piece, used = _format(form, arguments)
        output += piece
        arguments = arguments[used:]
        if not used or not arguments:
            break
    yield from process.write(1, output)
    return 0


def _format(form: str, arguments: Sequence[str]) -> tuple[bytes, int]:
    output = b""
    used = 0
    for found in re.finditer(r"\\([0-7]{1,3})|\\(.)|%%|%([sdb])|(%.?)|([^\\%]+|\\$)", form, re.DOTALL):
        octal, escape, conversion, unknown, text = found.groups()
        if octal:
            output += bytes([int(octal, 8) & 0xFF])
        elif escape:
            output += _ESCAPES.get(escape, f"\\{escape}").encode()
        elif conversion:
            argument = arguments[used] if used < len(arguments) else ("0" if conversion == "d" else "")
            used += 1
            output += _format("".join(argument), ())[0] if conversion == "b" else argument.encode()
        elif unknown:
            raise NotSimulatedError(f"printf's {unknown}")
        else:
            output += b"%" if text is None else text.encode("utf-8", "surrogateescape")
    return output, used


def _cat(process: Process) -> Body:
    found, failed = yield from inputs(process, operands(process, ""))
    for _, channel in found:
        while data := (yield from chunk(process, channel, PIPE_BYTES)):
            yield from process.write(1, data)
    return failed


def _tee(process: Process) -> Body:
    outputs = [open_to_write(process, name, append=False) for name in operands(process, "")]
    while data := (yield from process.read(0, PIPE_BYTES)):
        for output in outputs:
            output.write(memoryview(data))
        yield from process.write(1, data)
    return 0


def _head(process: Process) -> Body:
    given, names = options(process, "", "cn")
    found, failed = yield from inputs(process, names)
    for _, channel in found:
        if "c" in given:
            left = size_of(given["c"])
            while left and (data := (yield from chunk(process, channel, min(left, PIPE_BYTES)))):
                left -= len(data)
                yield from process.write(1, data)
            continue
        lines = size_of(given.get("n", "10"))
        while lines and (data := (yield from chunk(process, channel, PIPE_BYTES))):
            pieces = data.splitlines(keepends=True)[:lines]
            lines -= sum(piece.endswith(b"\n") for piece in pieces)
            yield from process.write(1, b"".join(pieces))
    return failed


def _tail(process: Process) -> Body:
    given, names = options(process, "f", "cn")
    found, failed = yield from inputs(process, names)
    for _, channel in found:
        kept = bytearray()
        while data := (yield from chunk(process, channel, PIPE_BYTES)):
            kept += data
            yield from _take_memory(process, len(kept), endless=isinstance(channel, ZeroDevice))
        lines = kept.splitlines(keepends=True)
        count = size_of(given.get("n", "10"))
        last = kept[-size_of(given["c"]) :] if "c" in given else b"".join(lines[-count:])
        yield from process.write(1, bytes(last))
    if "f" in given:
        yield Block()
    return failed


def _take_memory(process: Process, size: int, *, endless: bool) -> Steps:
    """Account for memory that is held; what would grow for ever is stopped at once."""
    if endless or size > process.kernel.memory_mb * MIB:
        raise OutOfMemoryError
    yield from ()


def _wc(process: Process) -> Body:
    given, names = options(process, "clmw", "")
    found, failed = yield from inputs(process, names)
    for name, channel in found:
        lines = words = size = 0
        while data := (yield from chunk(process, channel, PIPE_BYTES)):
            lines, words, size = lines + data.count(b"\n"), words + len(data.split()), size + len(data)
        wanted = [("l", lines), ("w", words), ("c", size)]
        counts = [str(count) for option, count in wanted if option in given or not given]
        line = " ".join(counts + ([name] if channel is not None else []))
        yield from process.write(1, f"{line}\n".encode())
    return failed


def _tr(process: Process) -> Body:
    sets = operands(process, "")
    if len(sets) != 2:
        raise NotSimulatedError("tr with other than two sets")
    source, target = (_format(operand, ())[0] for operand in sets)
    if not target or b"-" in source[1:-1]:
        raise NotSimulatedError("tr's ranges and empty sets")
    table = bytes.maketrans(source, target[: len(source)].ljust(len(source), target[-1:]))
    while data := (yield from process.read(0, PIPE_BYTES)):
        yield from process.write(1, data.translate(table))
    return 0


def _yes(process: Process) -> Body:
    line = (" ".join(process.argv[1:]) or "y").encode() + b"\n"
    block = line * max(PIPE_BYTES // len(line), 1)
    while True:
        yield from process.write(1, block)


def _seq(process: Process) -> Body:
    numbers = [int(operand) for operand in process.argv[1:]]
    first, step, last = {1: (1, 1, numbers[-1]), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), (numbers[0], numbers[len(numbers) // 2], numbers[-1])
    )
    text = "".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step))
    yield from process.write(1, text.encode())
    return 0


def _grep(process: Process) -> Body:
    given, rest = options(process, "qvciFE", "")
    if not rest:
        yield from process.write(2, b"grep: usage: grep PATTERN [FILE]\n")
        return 2
    pattern, *names = rest
    wanted = re.compile(
        re.escape(pattern).encode() if "F" in given else pattern.encode(),
        re.IGNORECASE if "i" in given else 0,
    )
    found, failed = yield from inputs(process, names)
    matched = b""
    for _, channel in found:
        data = b""
        while piece := (yield from chunk(process, channel, PIPE_BYTES)):
            data += piece
        for line in data.splitlines():
            if bool(wanted.search(line)) is ("v" not in given):
                matched += line + b"\n"
    count = matched.count(b"\n")
    output = f"{count}\n".encode() if "c" in given else matched
    if "q" not in given:
        yield from process.write(1, output)
    return 2 if failed else int(not matched)


TEXT_PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        "cat": _cat,
        "echo": _echo,
        "grep": _grep,
        "head": _head,
        "printf": _printf,
        "seq": _seq,
        "tail": _tail,
        "tee": _tee,
        "tr": _tr,
        "wc": _wc,
        "yes": _yes,
    }
)
