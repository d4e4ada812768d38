"""The programs of a virtual sandbox: few, small, and true to what they do support."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sandboxio.testing.fake.machine.calls import Block, Body, NotSimulatedError, Sleep
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.shell.file_programs import FILE_PROGRAMS
from sandboxio.testing.fake.shell.program import Program, options, signal_number
from sandboxio.testing.fake.shell.text_programs import TEXT_PROGRAMS

__all__ = ["PROGRAMS"]


def _sleep(process: Process) -> Body:
    for text in process.argv[1:]:
        if text == "infinity":
            yield Block()
        unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
        yield Sleep(float(text if unit is None else text[:-1]) * (unit or 1))
    return 0


def _ended(code: int) -> Program:
    def program(process: Process) -> Body:
        yield from ()
        return code

    return program


def _env(process: Process) -> Body:
    if len(process.argv) > 1:
        raise NotSimulatedError("env with arguments")
    lines = "".join(f"{name}={value}\n" for name, value in process.variables.items())
    yield from process.write(1, lines.encode())
    return 0


def _printenv(process: Process) -> Body:
    if len(process.argv) == 1:
        return (yield from _env(process))
    values = [process.variables[name] for name in process.argv[1:] if name in process.variables]
    yield from process.write(1, "".join(f"{value}\n" for value in values).encode())
    return 0 if len(values) == len(process.argv) - 1 else 1


def _pwd(process: Process) -> Body:
    yield from process.write(1, f"{process.folder}\n".encode())
    return 0


def _kill(process: Process) -> Body:
    words = process.argv[1:]
    number = int(signal.SIGTERM)
    if words and words[0].startswith("-"):
        given = words.pop(0)[1:]
        given = words.pop(0) if given == "s" and words else given
        found = signal_number(given)
        if found is None:
            yield from process.write(2, f"kill: {given}: invalid signal\n".encode())
            return 1
        number = found
    failed = 0
    for word in words:
        try:
            process.signal(int(word), number)
        except (ValueError, ProcessLookupError):
            yield from process.write(2, f"kill: {word}: no such process\n".encode())
            failed = 1
    return failed


def _fetch(process: Process) -> Body:
    """`curl` and `wget`, as far as they get the body of one URL."""
    name = process.argv[0]
    _, urls = options(process, "sSfLq", "mOT")
    if len(urls) != 1:
        raise NotSimulatedError(f"{name} with other than one URL")
    found = re.fullmatch(r"(?:(https?)://)?(\[[^]]+\]|[^/:]+)(?::(\d+))?(?:/.*)?", urls[0])
    if found is None:
        yield from process.write(2, f"{name}: malformed URL\n".encode())
        return 3
    port = int(found[3] or (443 if found[1] == "https" else 80))
    try:
        server = process.kernel.network.connect(found[2], port)
    except OSError as exc:
        yield from process.write(2, f"{name}: ({found[2]}:{port}) {exc.strerror or exc.args[-1]}\n".encode())
        return 6
    yield from process.write(1, server.body)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        **TEXT_PROGRAMS,
        **FILE_PROGRAMS,
        "curl": _fetch,
        "env": _env,
        "false": _ended(1),
        "kill": _kill,
        "printenv": _printenv,
        "pwd": _pwd,
        "sleep": _sleep,
        "true": _ended(0),
        "wget": _fetch,
    }
)
"""Programs by their name; `sh`, `python3` and `setsid` are with `shell`."""
