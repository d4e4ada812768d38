"""Standard input of one execution: given beforehand and fed, or written by the caller as it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from sandboxio.adapter.driver import ProcessHandle
from sandboxio.adapter.operation import Operation
from sandboxio.errors import ConfigurationError, ExecutionError
from sandboxio.models import Pipe

__all__ = ["StandardInput"]

_SEND_BYTES: Final = 64 * 1024
_FITTING_SECONDS: Final = 0.02


class StandardInput:
    """What goes into a process that was started with its input open.

    Args:
        source: The bytes to feed, or `PIPE` for input by `write`.
        operation: The record in which they are counted.
    """

    def __init__(self, source: bytes | Pipe, operation: Operation) -> None:
        self._operation = operation
        self._one_at_a_time = anyio.Lock()
        self._writable = isinstance(source, Pipe)
        self._rest = memoryview(b"" if isinstance(source, Pipe) else source)
        self._tried = False
        self.pending = not self._writable

    async def feed(self, handle: ProcessHandle) -> None:
        """Send what is pending, then the end. A cancelled call is continued by the next one.

        Input that nobody reads is no failure; a lost connection shows on reading.
        """
        try:
            await self._send_rest(handle)
            await handle.send_eof()
        except Exception:
            self._rest = memoryview(b"")
        self.pending = False

    async def feed_during(self, receive: Callable[[], Awaitable[None]], handle: ProcessHandle) -> None:
        """Feed while output is received, and stop when that has come. A cancelled call loses nothing."""
        if await self._feed_what_fits(handle):
            await receive()
            return
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.feed, handle)
                try:
                    await receive()
                except Exception as exc:
                    failure = exc
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:  # an interrupt, which callers expect bare
            raise errors.exceptions[0] from None
        if failure is not None:
            raise failure

    async def write(self, handle: ProcessHandle, data: bytes) -> None:
        """Send all of `data`, in one piece, behind what a cancelled call had not sent yet.

        Raises:
            ConfigurationError: The input is not open for writing.
            ExecutionError: The process no longer reads.
        """
        async with self._one_at_a_time:
            if not self._writable:
                raise ConfigurationError(
                    "the standard input of this process is not open",
                    hint="give stream(…, stdin=PIPE), and write before close_stdin()",
                )
            self._rest = memoryview(bytes(self._rest) + data)
            try:
                await self._send_rest(handle)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
                self._writable = False
                raise ExecutionError(
                    "the process no longer reads its standard input",
                    hint="check proc.returncode and its output: it has probably ended",
                ) from exc

    async def close(self, handle: ProcessHandle) -> None:
        """Send the end, behind what a cancelled call had not sent yet. Does nothing the second time."""
        async with self._one_at_a_time:
            if not self._writable:
                return
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._send_rest(handle)
                await handle.send_eof()
            self._writable = False

    async def _feed_what_fits(self, handle: ProcessHandle) -> bool:
        """Feed for a moment, once, without anyone reading output; says whether that was all."""
        if not self._tried:
            self._tried = True
            with anyio.move_on_after(_FITTING_SECONDS):
                await self.feed(handle)
        return not self.pending

    async def _send_rest(self, handle: ProcessHandle) -> None:
        while self._rest:
            self._rest = self._rest[await self._send(handle, self._rest) :]

    async def _send(self, handle: ProcessHandle, data: memoryview) -> int:
        taken = await handle.send(data[:_SEND_BYTES])
        self._operation.bytes_in += taken
        return taken
