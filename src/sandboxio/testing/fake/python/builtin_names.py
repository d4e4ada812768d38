"""The names that every piece of code has: builtin functions and exceptions, and open files."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Call, NotSimulatedError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.machine.streams import PIPE_BYTES
from sandboxio.testing.fake.python.operations import is_one_of
from sandboxio.testing.fake.python.things import Native, Thing, natives, nothing
from sandboxio.testing.fake.shell.program import open_to_read, open_to_write

__all__ = ["builtin_names", "leave"]

Value = Generator[Call, Any, Any]

_EXCEPTIONS: Final[tuple[type[BaseException], ...]] = (
    *(BaseException, Exception, ArithmeticError, AssertionError, AttributeError, ConnectionError, EOFError),
    *(ConnectionRefusedError, FileNotFoundError, ImportError, IndexError, KeyError, KeyboardInterrupt),
    *(LookupError, MemoryError, NameError, NotImplementedError, OSError, OverflowError, PermissionError),
    *(RuntimeError, StopIteration, SystemExit, TimeoutError, TypeError, ValueError, ZeroDivisionError),
)


_FUNCTIONS: Final = (
    *(abs, all, any, ascii, bin, bool, bytes, chr, dict, float, hex, int, len, list, max, min),
    *(ord, range, repr, reversed, round, set, sorted, str, sum, tuple, type, enumerate, zip),
)


def builtin_names(process: Process) -> dict[str, Any]:
    """The names that code finds without importing anything."""

    def _print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> Value:
        text = sep.join(str(value) for value in values) + end
        if file is None:
            yield from process.write(1, text.encode())
        else:
            yield from file.attribute("write").function(text)

    def _input(prompt: str = "") -> Value:
        yield from process.write(1, prompt.encode())
        line = b""
        while not line.endswith(b"\n") and (data := (yield from process.read(0, 1))):
            line += data
        if not line:
            raise EOFError("EOF when reading a line")
        return line.decode().removesuffix("\n")

    def _open(path: str, mode: str = "r", encoding: str | None = None) -> Thing:
        return _reader(process, path, mode) if mode.strip("bt") == "r" else _writer(process, path, mode)

    def _isinstance(value: Any, kinds: Any) -> bool:
        wanted: tuple[Any, ...] = kinds if is_one_of(kinds, tuple) else (kinds,)
        return any(is_one_of(value, _plain_type(kind)) for kind in wanted)

    names: dict[str, Any] = {kind.__name__: kind for kind in _EXCEPTIONS}
    names |= {function.__name__: Native(function.__name__, function) for function in _FUNCTIONS}
    names |= natives(_print, _input, _open, _isinstance)
    return names | {"exit": Native("exit", leave), "__name__": "__main__"}


def _plain_type(kind: Any) -> Any:
    """The type itself; code knows most of them as functions."""
    return kind.function if is_one_of(kind, Native) else kind


def leave(code: Any = None) -> None:
    """`sys.exit`."""
    raise SystemExit(code)


def _reader(process: Process, path: str, mode: str) -> Thing:
    channel = open_to_read(process, path)

    def _read() -> bytes | str:
        data = b""
        while chunk := channel.read(PIPE_BYTES):
            data += chunk
        return data if "b" in mode else data.decode()

    return Thing("file", natives(_read) | {"close": Native("close", nothing)})


def _writer(process: Process, path: str, mode: str) -> Thing:
    if mode.strip("bt") not in ("w", "a"):
        raise NotSimulatedError(f"Python's open mode {mode!r}")
    channel = open_to_write(process, path, append="a" in mode)

    def _write(data: bytes | str) -> int:
        rest = memoryview(data.encode() if isinstance(data, str) else data)
        while rest:
            rest = rest[channel.write(rest) :]
        return len(data)

    return Thing("file", natives(_write) | {"close": Native("close", nothing)})
