"""A file script's output is hostile: its first line, its end and its codes."""

from __future__ import annotations

import pytest

from sandboxio.adapter.driver import Exit
from sandboxio.errors import ConnectError, FileSystemError
from sandboxio.models import OutputChunk
from sandboxio_docker.file_script_run import ScriptRun


class Handle:
    """Writes what it is told, then ends."""

    def __init__(self, *chunks: bytes, code: int | None = 0, endless: bool = False) -> None:
        self._chunks = list(chunks)
        self._code = code
        self._endless = endless
        self.received = 0

    async def receive(self) -> OutputChunk | None:
        if not self._chunks:
            return None
        chunk = self._chunks[0] if self._endless else self._chunks.pop(0)
        self.received += len(chunk)
        return OutputChunk("stdout", chunk)

    async def wait(self) -> Exit:
        return Exit(self._code)


async def test_a_first_line_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    handle = Handle(b"\0" * 65536, endless=True)
    with pytest.raises(FileSystemError, match="no file"):
        await ScriptRun(handle, ["/work/x"], 1).line()  # type: ignore[arg-type]
    assert handle.received <= 2 * 65536


async def test_a_first_line_in_pieces_is_put_together() -> None:
    handle = Handle(b"12", b"34\nrest")
    assert await ScriptRun(handle, ["/work/x"], 1).line() == "1234"  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [None, 126, 128, 137])
async def test_an_operation_that_was_cut_off_is_no_fault_of_the_file(code: int | None) -> None:
    with pytest.raises(ConnectError, match="cut off"):
        await ScriptRun(Handle(code=code), ["/work/x"], 1).finish()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "named", "words"),
    [
        (80, "/work/source", "does not exist"),
        (86, "/work/target", "is a directory"),
        (87, "/work/target", "is not a directory"),
        (88, "/work/target", "failed with code 1"),
        (1, "/work/source", "failed with code 1"),
    ],
)
async def test_a_script_about_two_paths_says_which_one_is_to_blame(code: int, named: str, words: str) -> None:
    with pytest.raises(FileSystemError, match=words) as caught:
        await ScriptRun(Handle(code=code), ["/work/source", "/work/target"], 1).finish()  # type: ignore[arg-type]
    assert repr(named) in caught.value.message
