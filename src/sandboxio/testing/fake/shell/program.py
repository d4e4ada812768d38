"""What the programs of a virtual sandbox have in common: files, devices, options and complaints."""

from __future__ import annotations

import fnmatch
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Body, Call, Exited, NotSimulatedError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import Channel, FileChannel, NullDevice, ZeroDevice

__all__ = [
    "MIB",
    "Program",
    "chunk",
    "complaint",
    "error_text",
    "inputs",
    "matching_names",
    "open_to_read",
    "open_to_write",
    "operands",
    "options",
    "signal_number",
    "size_of",
    "two_operands",
]

MIB: Final = 1024 * 1024

Program = Callable[[Process], Body]

_DEVICES: Final[Mapping[str, Callable[[], Channel]]] = MappingProxyType(
    {"/dev/null": NullDevice, "/dev/zero": ZeroDevice}
)


def open_to_read(process: Process, path: str) -> Channel:
    """A file or device, to be read.

    Raises:
        OSError: It cannot be.
    """
    full = process.path(path)
    if full in _DEVICES:
        return _DEVICES[full]()
    return FileChannel(process.kernel.tree, process.kernel.tree.file(full), append=False)


def open_to_write(process: Process, path: str, *, append: bool) -> Channel:
    """A file or device, to be written.

    Raises:
        OSError: It cannot be.
    """
    full = process.path(path)
    if full in _DEVICES:
        return _DEVICES[full]()
    node = process.kernel.tree.open_file(full, truncate=not append)
    return FileChannel(process.kernel.tree, node, append=append)


def error_text(program: str, error: OSError) -> bytes:
    """The line that a program writes about an error of the system."""
    subject = f"{error.filename}: " if error.filename else ""
    return f"{program}: {subject}{error.strerror or error}\n".encode()


def complaint(text: str, code: int) -> Program:
    """A program that says this on standard error, and ends."""

    def program(process: Process) -> Body:
        yield from process.write(2, f"{text}\n".encode("utf-8", "surrogateescape"))
        return code

    return program


def signal_number(name: str) -> int | None:
    """The number of a signal given as `9`, `KILL` or `SIGKILL`."""
    if name.isdecimal():
        return int(name)
    found = getattr(signal.Signals, f"SIG{name.upper().removeprefix('SIG')}", None)
    return None if found is None else int(found)


Inputs = list[tuple[str, Channel | None]]


def inputs(
    process: Process, names: Sequence[str]
) -> Generator[Call, Any, tuple[list[tuple[str, Channel | None]], int]]:
    """Channels of the files that are named, `None` for standard input; complaints go to stderr."""
    found: list[tuple[str, Channel | None]] = []
    failed = 0
    for name in names or ["-"]:
        if name == "-":
            found.append((name, None))
            continue
        try:
            found.append((name, open_to_read(process, name)))
        except OSError as exc:
            exc.filename = name
            failed = 1
            yield from process.write(2, error_text(process.argv[0], exc))
    return found, failed


def chunk(process: Process, channel: Channel | None, size: int) -> Generator[Call, Any, bytes]:
    """The next bytes of an input; none at its end."""
    if channel is None:
        return (yield from process.read(0, size))
    return channel.read(size) or b""


def options(process: Process, flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """Options as `getopt` reads them, and the operands.

    Raises:
        NotSimulatedError: An option is none of these.
    """
    found: dict[str, str] = {}
    words = process.argv[1:]
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        for index, option in enumerate(word[1:], start=1):
            if option in valued:
                rest = word[index + 1 :]
                if not rest and not words:
                    raise Exited(2)
                found[option] = rest or words.pop(0)
                break
            if option not in flags:
                raise NotSimulatedError(f"{process.argv[0]} {word[:40]}")
            found[option] = ""
    return found, words


def operands(process: Process, flags: str) -> list[str]:
    """The operands of a program that has these flags."""
    return options(process, flags, "")[1]


def two_operands(process: Process, flags: str) -> tuple[str, str]:
    """The operands of a program that takes two."""
    found = operands(process, flags)
    if len(found) != 2:
        raise NotSimulatedError(f"{process.argv[0]} with other than two operands")
    return found[0], found[1]


def size_of(text: str) -> int:
    """A number with its unit, such as `10M`."""
    unit = {"k": 1024, "K": 1024, "M": MIB, "G": 1024 * MIB}.get(text[-1:])
    return int(text if unit is None else text[:-1]) * (unit or 1)


def matching_names(names: Sequence[str], pattern: str) -> list[str]:
    """Names that a shell pattern covers, sorted; hidden ones only if it says so."""
    hidden = pattern.startswith(".")
    return sorted(
        name for name in names if fnmatch.fnmatchcase(name, pattern) and name.startswith(".") <= hidden
    )
