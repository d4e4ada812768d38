"""A started command: its output, its input, its end."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import anyio
from e2b import AsyncCommandHandle, CommandExitException
from e2b.exceptions import NotFoundException, SandboxException

from sandboxio.adapter.driver import Exit
from sandboxio.errors import ConnectError
from sandboxio.models import OutputChunk
from sandboxio_e2b.feed import Feed, Item
from sandboxio_e2b.wrapper import StatusFilter

__all__ = ["EXACT_OUTPUT", "E2BProcess", "Listener"]

_DECODERS: Final = ("_stdout_decoder", "_stderr_decoder")

EXACT_OUTPUT: Final = set(_DECODERS) <= set(AsyncCommandHandle.__init__.__code__.co_names)
"""Whether the bytes that a command writes can be had as they are.

The SDK decodes them as UTF-8, with two decoders of each handle. They are replaced by ones that lose
nothing, so there is no price for it; an SDK that has no such decoders gives text.
"""

_END_SECONDS: Final = 1.0
_SIGNAL_WORDS: Final = {
    "hangup": 1,
    "interrupt": 2,
    "quit": 3,
    "illegal instruction": 4,
    "trace/breakpoint trap": 5,
    "aborted": 6,
    "bus error": 7,
    "floating point exception": 8,
    "killed": 9,
    "user defined signal 1": 10,
    "segmentation fault": 11,
    "user defined signal 2": 12,
    "broken pipe": 13,
    "alarm clock": 14,
    "terminated": 15,
}
_SIGNAL: Final = re.compile(r"signal: (?:signal (\d+)|([a-z0-9/ ]+))")
_INPUT_CLOSED: Final = ("broken pipe", "closed", "not found", "no such process")


class _Lossless:
    """A decoder that turns each byte into one character.

    Args:
        pending: Bytes that the decoder in whose place it comes has taken and not yet decoded.
    """

    def __init__(self, pending: bytes) -> None:
        self._pending = pending

    def decode(self, data: bytes, final: bool = False) -> str:
        data, self._pending = self._pending + data, b""
        return data.decode("latin-1")


class Listener:
    """What the SDK calls with a command's output.

    Args:
        word: What the command's status line begins with.
    """

    def __init__(self, word: str) -> None:
        self.feed = Feed()
        self.status = StatusFilter(word)
        self._encoding = "utf-8"

    def attach(self, handle: AsyncCommandHandle[Any]) -> None:
        """Have the bytes of a handle that was just made come as they are."""
        if EXACT_OUTPUT:
            for name in _DECODERS:
                pending, _ = getattr(handle, name).getstate()
                setattr(handle, name, _Lossless(pending))
            self._encoding = "latin-1"

    async def stdout(self, text: str) -> None:
        """A piece of standard output."""
        await self._put("stdout", text.encode(self._encoding))

    async def stderr(self, text: str) -> None:
        """A piece of standard error, and perhaps the status line."""
        await self._put("stderr", self.status.feed(text.encode(self._encoding)))

    async def end(self, failure: Exception | None) -> None:
        """All output has come."""
        await self._put("stderr", self.status.flush())
        self.feed.end(failure)

    async def _put(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        if data:
            await self.feed.put(OutputChunk(stream, data))


class E2BProcess:
    """A `ProcessHandle` over a command handle of the SDK.

    Args:
        handle: The SDK's.
        listener: Where its output goes.
        kill: Ends the tree of the process with this id, or of a leader that has ended.
    """

    def __init__(
        self,
        handle: AsyncCommandHandle[Any],
        listener: Listener,
        kill: Callable[[str], Awaitable[None]],
    ) -> None:
        self._handle = handle
        self._listener = listener
        self._kill = kill
        self._loop = asyncio.get_running_loop()
        self._sending: asyncio.Task[int] | None = None
        self._exit: Exit | None = None
        self._over = asyncio.Event()
        self._waiting = asyncio.ensure_future(self._wait_for_end())

    async def receive(self) -> Item | None:
        """See `Execution.receive`."""
        return await self._listener.feed.take()

    async def poll(self) -> Exit | None:
        """See `Execution.poll`. Known without asking anybody, from any event loop."""
        return self._listener.status.exit or self._exit

    async def wait(self) -> Exit:
        """See `Execution.wait`."""
        await self._over.wait()
        return await self.poll() or Exit(None)

    async def kill(self) -> None:
        """See `Execution.kill`.

        The word for its end is that of the script that ended the tree: E2B's own comes when it comes,
        and behind all output. Output that nobody reads is let in for a moment, so that what was written
        before the end is there to be taken.
        """
        ours = asyncio.get_running_loop() is self._loop
        if ours:
            self._listener.feed.widen()
        await self._kill("" if await self.poll() else str(self._handle.pid))
        if ours:
            with anyio.move_on_after(_END_SECONDS):
                await self._over.wait()

    async def aclose(self) -> None:
        """See `Execution.aclose`."""
        for task in (self._sending, self._waiting):
            if task is not None and not task.done():
                task.cancel()
        if not self._over.is_set():
            with contextlib.suppress(Exception):
                await self._handle.disconnect()

    async def send(self, data: memoryview) -> int:
        """See `ProcessHandle.send`. A call that is cancelled leaves its request going, for the next one."""
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send(bytes(data)))
        sending = self._sending
        await asyncio.wait({sending})
        self._sending = None
        return sending.result()

    async def send_eof(self) -> None:
        """See `ProcessHandle.send_eof`."""
        try:
            await self._handle.close_stdin()
        except SandboxException as exc:
            if _means_unread(exc):
                raise anyio.BrokenResourceError from exc
            raise

    async def _send(self, data: bytes) -> int:
        try:
            await self._handle.send_stdin(data, request_timeout=0)
        except SandboxException as exc:
            if _means_unread(exc):
                raise anyio.BrokenResourceError from exc
            raise
        return len(data)

    async def _wait_for_end(self) -> None:
        """The SDK's own `wait` must never be cancelled while the command runs: that stops its reader."""
        failure: Exception | None = None
        try:
            await self._handle.wait()
            self._exit = Exit(None)  # without a status line the shell around the command did not run whole
        except CommandExitException as exc:
            self._exit = Exit(_signal_code(exc))
        except SandboxException as exc:
            failure = exc
        except Exception as exc:  # the SDK has no class of its own for an end that it was not told
            failure = ConnectError(
                "the connection to a command ended without its exit code", hint="run the command again"
            )
            failure.__cause__ = exc
        await self._listener.end(None if self._listener.status.exit else failure)
        self._over.set()


def _means_unread(exc: SandboxException) -> bool:
    """Whether nobody reads the input any more."""
    text = str(exc).lower()
    return isinstance(exc, NotFoundException) or any(words in text for words in _INPUT_CLOSED)


def _signal_code(exc: CommandExitException) -> int | None:
    """The code for the signal that ended the shell around the command, which is told in words."""
    found = _SIGNAL.match(exc.error or "")
    if found is None:
        return None
    number = int(found[1]) if found[1] else _SIGNAL_WORDS.get(found[2].strip())
    return None if number is None else 128 + number
