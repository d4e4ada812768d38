"""One cell: its output as it comes, its results, its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import anyio
from e2b.exceptions import NotFoundException
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import CodeSpec, Exit, OutputDropped
from sandboxio.adapter.output import context_lost
from sandboxio.errors import ConnectError
from sandboxio.models import OutputChunk
from sandboxio_e2b.contexts import CodeContext
from sandboxio_e2b.feed import Feed, Item
from sandboxio_e2b.interpreter import execute
from sandboxio_e2b.messages import TOO_LONG
from sandboxio_e2b.mime import rich_outputs

__all__ = ["Cell"]

_KERNEL_DIED: Final = "ContextRestarting"
_EXIT: Final = "SystemExit"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_END_SECONDS: Final = 1.0


class Cell:
    """An `Execution` of a cell.

    It is made before its kernel is prepared. It is announced meanwhile, and begins when that is done.

    Args:
        native: The SDK's sandbox.
        spec: The cell.
        context: The context that it runs in, which is held, and open under the id that it has now.
        kill: Ends its tree.
        close: Gives the context back, once and whatever is cancelled meanwhile.
    """

    def __init__(
        self,
        native: AsyncSandbox,
        spec: CodeSpec,
        context: CodeContext,
        *,
        kill: Callable[[], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._native = native
        self._spec = spec
        self._context = context
        self._context_id = context.native_id
        self._feed = Feed()
        self._note: OutputChunk | None = None
        self._kill = kill
        self._close: Callable[[], Awaitable[None]] | None = close
        self._loop = asyncio.get_running_loop()
        self._code: int | None = None
        self._exit: Exit | None = None
        self._over = asyncio.Event()
        self._turn = asyncio.Event()
        self._reading: asyncio.Future[None] | None = None

    def announce(self) -> None:
        """Send the cell but for its last byte: it is under way then, and cannot run yet."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read())

    def begin(self) -> None:
        """Let the announced cell run. That its context has lost its state is said first, and once."""
        if self._context.lost:
            self._note = context_lost(self._spec.context_id or "")
            self._context.lost = False
        self._turn.set()

    async def withdraw(self) -> None:
        """Take back what was announced, and listen no more to what has begun."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading}, timeout=_END_SECONDS)
            self._reading = None

    async def receive(self) -> Item | None:
        """See `Execution.receive`."""
        if self._note is not None:
            note, self._note = self._note, None
            return note
        return await self._feed.take()

    async def poll(self) -> Exit | None:
        """See `Execution.poll`."""
        return self._exit

    async def wait(self) -> Exit:
        """See `Execution.wait`."""
        await self._over.wait()
        return self._exit or Exit(None)

    async def kill(self) -> None:
        """See `Execution.kill`."""
        if self._exit is not None:
            return
        ours = asyncio.get_running_loop() is self._loop
        if ours:
            self._feed.widen()
        await self._kill()
        if ours:  # what it had written before is then there to be taken
            with anyio.move_on_after(_END_SECONDS):
                await self._over.wait()

    async def aclose(self) -> None:
        """See `Execution.aclose`.

        The last of an answer comes while a context of this cell's alone is removed. One that others use
        is given back behind it, since E2B interrupts the kernel of an answer that is broken off.
        """
        alone = self._spec.context_id is None
        try:
            if not alone or self._exit is None:
                await self._leave_answer()
        finally:
            close, self._close = self._close, None
            if close is not None:
                await close()
        await self._leave_answer()

    async def _leave_answer(self) -> None:
        """Let the rest of an answer come if the cell has ended, and listen no more."""
        if self._reading is not None and self._exit is not None:
            await asyncio.wait({self._reading}, timeout=_END_SECONDS)
        await self.withdraw()

    async def _read(self) -> None:
        failure: Exception | None = None
        try:
            await self._run()
        except NotFoundException as exc:
            if self._context.native_id == self._context_id:
                self._context.native_id = ""
            failure = ConnectError("the code context is not there any more", hint="run the cell again")
            failure.__cause__ = exc
        except Exception as exc:
            failure = exc
        if self._code is not None:  # an error that nobody handled ends a cell, whatever comes after it
            self._exit = self._exit or Exit(self._code)
        if self._exit is None and failure is None:
            failure = ConnectError("the connection to a cell ended before the cell did", hint="run it again")
        self._end(failure)

    async def _run(self) -> None:
        """Send the cell, once more in one piece if its announcement was refused before its turn came."""
        try:
            await self._listen(self._turn)
        except Exception:
            if self._turn.is_set():
                raise
            await self._turn.wait()
            await self._listen(None)

    async def _listen(self, turn: asyncio.Event | None) -> None:
        async for message in execute(self._native, self._context_id, self._spec.code, turn=turn):
            await self._handle(message)

    def _end(self, failure: Exception | None) -> None:
        self._feed.end(None if self._exit else failure)
        self._over.set()

    async def _handle(self, message: Mapping[str, Any]) -> None:
        if self._over.is_set():  # it has ended: what comes behind that is not its own
            return
        if message is TOO_LONG:
            await self._feed.put(OutputDropped())
            return
        match message.get("type"):
            case "stdout" | "stderr" as stream:
                await self._write(stream, str(message.get("text", "")))
            case "result":
                for output in rich_outputs(message):
                    await self._feed.put(output)
            case "error":
                await self._fail(message)
            case "end_of_execution":
                self._exit = Exit(self._code or 0)
                self._end(None)
            case _:  # the number of executions, keepalives, and what later versions may add
                return

    async def _fail(self, message: Mapping[str, Any]) -> None:
        """An error that nobody handled: the code of the cell, and what Python would write to stderr."""
        name, value = str(message.get("name", "")), str(message.get("value", ""))
        if name == _EXIT:
            self._code = _code_of_exit(value)
            if not _is_code(value):
                await self._write("stderr", f"{value}\n")
            return
        if name == _KERNEL_DIED:
            raise ConnectError(
                "the interpreter ended during the cell, with an exit code that E2B does not tell",
                hint="look for what ends the process: os._exit(), a crash, or too little memory",
            )
        traceback = _COLOURS.sub("", str(message.get("traceback") or f"{name}: {value}"))
        await self._write("stderr", traceback.rstrip("\n") + "\n")
        self._code = 1

    async def _write(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        if text:
            await self._feed.put(OutputChunk(stream, text.encode("utf-8", "replace")))


def _is_code(value: str) -> bool:
    return value in ("", "None") or value.removeprefix("-").isdecimal()


def _code_of_exit(value: str) -> int:
    """As a Python process ends: nothing is 0, a number its lowest byte, anything else 1."""
    if value in ("", "None"):
        return 0
    return int(value) & 0xFF if _is_code(value) and len(value) < 20 else 1
