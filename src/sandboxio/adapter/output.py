"""Keeping what an execution writes, within a bound."""

from __future__ import annotations

import codecs
from typing import Final, Literal

from sandboxio.adapter.driver import OutputDropped
from sandboxio.models import ExecResult, OutputChunk, RichOutput

__all__ = ["OUTPUT_CAP_BYTES", "CollectedOutput", "context_lost"]

OUTPUT_CAP_BYTES: Final = 16 * 1024 * 1024
"""How much of each stream is kept; the rest is read and dropped."""

_RICH_OVERHEAD_BYTES: Final = 256
"""What each rich output counts for beside its data, so that empty ones are bounded too."""


def context_lost(context_id: str) -> OutputChunk:
    """What the first cell says after one that had to be stopped has cost its context the state.

    Example: `context_lost("analysis").stream` is `"stderr"`.
    """
    text = f"sandboxio: the context {context_id!r} lost its state when its last cell was stopped\n"
    return OutputChunk("stderr", text.encode())


class CollectedOutput:
    """What was written so far: at most the cap per stream, and as much of rich output in all."""

    __slots__ = ("_rich", "_rich_bytes", "_streams", "truncated")

    def __init__(self) -> None:
        self._streams: dict[Literal["stdout", "stderr"], bytearray] = {
            "stdout": bytearray(),
            "stderr": bytearray(),
        }
        self._rich: list[RichOutput] = []
        self._rich_bytes = 0
        self.truncated = False

    def add(self, item: OutputChunk | RichOutput | OutputDropped) -> None:
        """Keep a piece, or the part of it that fits."""
        if isinstance(item, OutputDropped):
            self.truncated = True
            return
        if isinstance(item, RichOutput):
            self._add_rich(item)
            return
        kept = self._streams[item.stream]
        room = OUTPUT_CAP_BYTES - len(kept)
        if len(item.data) > room:
            self.truncated = True
            if room:
                kept += memoryview(item.data)[:room]
        else:
            kept += item.data

    def _add_rich(self, item: RichOutput) -> None:
        size = len(item.data) + len(item.mime_type) + _RICH_OVERHEAD_BYTES
        if self._rich_bytes + size > OUTPUT_CAP_BYTES:
            self.truncated = True
            return
        self._rich_bytes += size
        self._rich.append(item)

    def result(self, exit_code: int, *, rich: bool = False, oom_killed: bool = False) -> ExecResult:
        """All that was kept, decoded.

        Args:
            exit_code: The code of the result; -1 for a partial one.
            rich: Whether the backend has rich outputs to give at all.
            oom_killed: Whether a process was killed for want of memory meanwhile.
        """
        return ExecResult(
            exit_code,
            self._text("stdout"),
            self._text("stderr"),
            results=tuple(self._rich) if rich else None,
            truncated=self.truncated,
            oom_killed=oom_killed,
        )

    def _text(self, stream: Literal["stdout", "stderr"]) -> str:
        """A character that the cap cut in two is dropped, not shown as a broken one."""
        data = self._streams[stream]
        cut = self.truncated and len(data) == OUTPUT_CAP_BYTES
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not cut)
