"""How a cell or a command ended, from what E2B says about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from e2b import CommandExitException

from sandboxio.adapter.driver import CodeSpec, Exit
from sandboxio.errors import ConnectError
from sandboxio.models import OutputChunk
from sandboxio_e2b import cell
from sandboxio_e2b.contexts import CodeContext
from sandboxio_e2b.handle import _signal_code

END = {"type": "end_of_execution"}


def error(name: str, value: str, **more: str) -> dict[str, str]:
    return {"type": "error", "name": name, "value": value, "traceback": "", **more}


def run(monkeypatch: pytest.MonkeyPatch, *messages: Mapping[str, Any]) -> tuple[bytes, Exit]:
    """Let the interpreter say `messages`: what stands on standard error, and the exit."""

    async def execute(*_: object, turn: asyncio.Event) -> AsyncIterator[Mapping[str, Any]]:
        await turn.wait()
        for message in messages:
            yield message

    closed: list[None] = []

    async def nothing() -> None:
        pass

    async def close() -> None:
        closed.append(None)

    async def main() -> tuple[bytes, Exit]:
        spec = CodeSpec("", "python", None, {}, timeout=60)
        running = cell.Cell(None, spec, CodeContext(), kill=nothing, close=close)  # type: ignore[arg-type]
        running.announce()
        running.begin()
        written = b""
        while (item := await running.receive()) is not None:
            assert isinstance(item, OutputChunk)
            assert item.stream == "stderr"
            written += item.data
        ended = await running.wait()
        await running.aclose()
        await running.aclose()
        assert len(closed) == 1
        return written, ended

    monkeypatch.setattr(cell, "execute", execute)
    return asyncio.run(main())


@pytest.mark.parametrize("late", [error("NameError", "x"), {"type": "stderr", "text": "late"}, END])
def test_what_comes_behind_the_end_of_a_cell_is_not_part_of_it(
    late: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, END, *([late] * 40)) == (b"", Exit(0))


@pytest.mark.parametrize(
    ("value", "code"),
    [("0", 0), ("3", 3), ("255", 255), ("256", 0), ("-1", 255), ("None", 0), ("", 0)],
)
def test_a_cell_that_exits_has_the_code_of_a_python_process(
    value: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, error("SystemExit", value), END) == (b"", Exit(code))


@pytest.mark.parametrize("value", ["why", "--5", "-", "1-2", "²", "1.5", "5 5", "+5"])
def test_a_cell_that_exits_with_words_writes_them(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, error("SystemExit", value), END) == (f"{value}\n".encode(), Exit(1))


def test_a_code_of_any_length_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ended = run(monkeypatch, error("SystemExit", "9" * 5000), END)
    assert ended == Exit(1)


def test_an_error_that_nobody_handled_is_what_python_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = "\x1b[31mTraceback\x1b[0m\nValueError: no\n"
    assert run(monkeypatch, error("ValueError", "no", traceback=coloured), END) == (
        b"Traceback\nValueError: no\n",
        Exit(1),
    )
    assert run(monkeypatch, error("ValueError", "no"), END) == (b"ValueError: no\n", Exit(1))


def test_a_cell_that_ends_is_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    later = {"type": "of a later version", "text": 1}
    assert run(monkeypatch, {"type": "number_of_executions", "execution_count": 1}, later, END) == (
        b"",
        Exit(0),
    )


def test_an_answer_without_an_end_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectError, match="before the cell did"):
        run(monkeypatch, {"type": "stderr", "text": "x"})


def test_a_kernel_that_died_has_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectError, match="does not tell"):
        run(monkeypatch, error("ContextRestarting", "the kernel died"), END)


def test_an_error_in_the_middle_of_a_cell_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a task of the cell's that fails, which the interpreter shows while the cell goes on."""
    failure = error("ValueError", "no", traceback="Traceback\nValueError: no")
    later = {"type": "stderr", "text": "later\n"}
    assert run(monkeypatch, failure, later, END) == (b"Traceback\nValueError: no\nlater\n", Exit(1))


def test_an_error_is_the_end_of_a_cell_whose_stream_is_then_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, error("ValueError", "no")) == (b"ValueError: no\n", Exit(1))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("signal: killed", 137),
        ("signal: terminated", 143),
        ("signal: segmentation fault (core dumped)", 139),
        ("signal: user defined signal 1", 138),
        ("signal: signal 34", 162),
        ("signal: unheard of", None),
        ("exit status 1", None),
        ("something else", None),
        ("", None),
        (None, None),
    ],
)
def test_a_shell_that_was_ended_by_a_signal(words: str | None, expected: int | None) -> None:
    assert _signal_code(CommandExitException(stderr="", stdout="", exit_code=-1, error=words)) == expected
