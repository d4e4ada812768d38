"""One execution from its start to its end: the deadline, the drain, the input and the tree's end.

`run` is "stream and collect", so what holds for the stream holds for every execution.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Final, NoReturn, Self, cast

import anyio

from sandboxio.adapter.driver import DeadlineReached, Execution, Exit, ProcessHandle
from sandboxio.adapter.guard import Guard
from sandboxio.adapter.operation import Operation
from sandboxio.adapter.output import CollectedOutput
from sandboxio.adapter.teardown import bounded
from sandboxio.adapter.validation import checked_input
from sandboxio.adapter.watchdog import watch
from sandboxio.errors import (
    ConfigurationError,
    ConnectError,
    ExecutionError,
    ExecutionTimeout,
    ResourceLimitExceeded,
    SandboxError,
    SandboxGone,
)
from sandboxio.models import PIPE, ExecResult, OutputChunk, Pipe, RichOutput

__all__ = ["PARTIAL_EXIT_CODE", "Process"]

PARTIAL_EXIT_CODE: Final = -1
DRAIN_SECONDS: Final = 0.5
_FIRST_POLL_SECONDS: Final = 0.1
_LAST_POLL_SECONDS: Final = 0.5
_POLL_GROWTH: Final = 1.5
_SEND_BYTES: Final = 64 * 1024
_AFTER_LIFETIME_SECONDS: Final = 5.0
_KILLED_CODE: Final = 137

_Output = OutputChunk | RichOutput


class Process:
    """The streaming handle. It starts on enter, and on exit nothing unfinished of its tree is left.

    Args:
        guard: The gate to the driver.
        operation: The record of this execution, not yet open.
        start: Starts it, given its bound in seconds.
        timeout: The bound that was asked for; `None` inherits the sandbox's.
        stdin: Input to feed, `PIPE` for input by `write`, or `None`.
        rich: Whether rich outputs may come.
        watched: Whether the caller may turn away while it runs, as from a stream.
    """

    def __init__(
        self,
        guard: Guard,
        operation: Operation,
        start: Callable[[float], Awaitable[Execution]],
        *,
        timeout: float | None,
        stdin: bytes | Pipe | None,
        rich: bool = False,
        watched: bool = False,
    ) -> None:
        self._guard = guard
        self._operation = operation
        self._start = start
        self._requested_timeout = timeout
        self._stdin_open = stdin is PIPE
        self._pending_input = memoryview(stdin) if isinstance(stdin, bytes) else memoryview(b"")
        self._feeding = isinstance(stdin, bytes)
        self._rich = rich
        self._watched = watched
        self._collected = CollectedOutput()
        self._stack: AsyncExitStack | None = None
        self._slot: list[_Output | None] = []
        self._exit: Exit | None = None
        self._missing = False
        self._stopped = False
        self._output_ended = False
        self._result: ExecResult | None = None
        self._failure: SandboxError | None = None
        self._poll_interval = _FIRST_POLL_SECONDS
        self._drain_until = 0.0

    def __repr__(self) -> str:
        state = "prepared" if self._stack is None else "running"
        if self._failure is not None:
            state = f"failed with {self._failure.code}"
        elif self._result is not None:
            state = f"ended with exit code {self._result.exit_code}"
        return f"<Process {state}>"

    @property
    def returncode(self) -> int | None:
        """The exit code, or `None` while it runs."""
        return None if self._result is None else self._result.exit_code

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise ConfigurationError(
                "this process was started before", hint="call stream() again for another run"
            )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._operation)
            self._execution = await self._begin()
            stack.push_async_exit(self._end)
            if self._watched:
                stack.callback(watch(self._remaining(), self._end_unread).cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._stack is None:
            return None
        return await self._stack.__aexit__(exc_type, exc, traceback)

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        return self

    async def __anext__(self) -> OutputChunk:
        while (item := await self._next()) is not None:
            if isinstance(item, OutputChunk):
                return item
        await self._conclude(streamed=True)
        raise StopAsyncIteration

    async def wait(self) -> ExecResult:
        """Drain what is unread and return the result, with `streamed=True` and empty texts."""
        while await self._next() is not None:
            pass
        return await self._conclude(streamed=True)

    async def collect(self) -> ExecResult:
        """Read all output to its end and return it in the result."""
        while (item := await self._next()) is not None:
            self._collected.add(item)
        return await self._conclude(streamed=False)

    async def kill(self) -> None:
        """End the whole process tree. Does nothing when it has ended."""
        self._require_started()
        if self._result is None and self._failure is None:
            await self._stop()

    async def write(self, data: bytes | str) -> None:
        """Write to standard input; text as UTF-8. Waits while the process does not read."""
        self._require_started()
        if not self._stdin_open:
            raise ConfigurationError(
                "the standard input of this process is not open",
                hint="give stream(…, stdin=PIPE), and write before close_stdin()",
            )
        view = memoryview(checked_input(data))
        handle = cast("ProcessHandle", self._execution)
        sent = False
        with anyio.move_on_after(self._remaining()):
            try:
                while view:
                    taken = await handle.send(view[:_SEND_BYTES])
                    self._operation.bytes_in += taken
                    view = view[taken:]
                sent = True
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
                self._stdin_open = False
                raise ExecutionError(
                    "the process no longer reads its standard input",
                    hint="check proc.returncode and its output: it has probably ended",
                ) from exc
            except Exception as exc:
                await self._guard.explain(exc, "writing standard input")
        if not sent:
            await self._overrun()

    async def close_stdin(self) -> None:
        """Let the process read end of file. Does nothing the second time."""
        self._require_started()
        if not self._stdin_open:
            return
        self._stdin_open = False
        try:
            await cast("ProcessHandle", self._execution).send_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        except Exception as exc:
            await self._guard.explain(exc, "closing standard input")

    async def _begin(self) -> Execution:
        lifetime = self._guard.lifetime
        self._timeout = lifetime.execution_timeout(self._requested_timeout)
        bound = min(self._timeout, max(lifetime.remaining(), 0) + _AFTER_LIFETIME_SECONDS)
        self._deadline = time.monotonic() + bound
        self._next_poll = time.monotonic() + self._poll_interval
        execution: Execution | None = None
        async with self._guard.calls("starting an execution"):
            with anyio.move_on_after(bound):
                execution = await self._start(self._timeout)
        if execution is None:
            raise self._timed_out()
        return execution

    async def _end(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._result is None:
            await self._stop()
        await bounded(self._execution.aclose)

    async def _next(self) -> _Output | None:
        """The next output, or `None` at its end, which is at most the drain after the leader's end."""
        self._require_started()
        if self._failure is not None:
            raise self._failure
        if self._output_ended:
            return None
        while not self._slot:
            now = time.monotonic()
            if self._exit is not None and now >= self._drain_until:
                self._slot.append(None)
                break
            if self._exit is None and now >= self._deadline:
                await self._overrun()
            if self._exit is None and now >= self._next_poll:
                await self._poll()
            until = self._drain_until if self._exit else min(self._deadline, self._next_poll)
            with anyio.move_on_after(until - time.monotonic()):
                await self._fetch()
        item = self._slot.pop()
        if item is None:
            self._output_ended = True
        else:
            self._operation.bytes_out += len(item.data)
        return item

    async def _fetch(self) -> None:
        """Put the next output into the slot, where no cancellation can lose it."""
        try:
            if not self._feeding:
                self._slot.append(await self._execution.receive())
                return
            failure: Exception | None = None
            async with anyio.create_task_group() as group:
                group.start_soon(self._feed)
                try:
                    self._slot.append(await self._execution.receive())
                except Exception as exc:
                    failure = exc
                group.cancel_scope.cancel()
            if failure is not None:
                raise failure
        except DeadlineReached:
            await self._overrun()
        except Exception as exc:
            await self._guard.explain(exc, "reading output")

    async def _feed(self) -> None:
        """Write the given input for as long as output is awaited."""
        handle = cast("ProcessHandle", self._execution)
        try:
            while self._pending_input:
                taken = await handle.send(self._pending_input[:_SEND_BYTES])
                self._operation.bytes_in += taken
                self._pending_input = self._pending_input[taken:]
            await handle.send_eof()
        except Exception:  # input that nobody reads is no failure; a lost connection shows on reading
            self._pending_input = memoryview(b"")
        self._feeding = False

    async def _poll(self) -> None:
        self._poll_interval = min(self._poll_interval * _POLL_GROWTH, _LAST_POLL_SECONDS)
        try:
            self._exit = await self._execution.poll()
        except Exception as exc:
            await self._guard.explain(exc, "asking for the state of an execution")
        now = time.monotonic()
        self._next_poll = now + self._poll_interval
        self._drain_until = now + DRAIN_SECONDS

    async def _conclude(self, *, streamed: bool) -> ExecResult:
        """Turn the leader's end into a result, once."""
        if self._failure is not None:
            raise self._failure
        if self._result is None:
            ended = self._exit or await self._await_exit()
            code = await self._exit_code(ended)
            self._operation.exit_code = code
            result = self._collected.result(code, rich=self._rich, oom_killed=ended.oom_killed)
            self._result = replace(result, streamed=streamed, meter=self._operation.meter())
            self._missing = ended.missing
        return self._result

    @property
    def program_missing(self) -> bool:
        """Whether it ended because its program was not there."""
        return self._result is not None and self._missing

    async def _await_exit(self) -> Exit:
        ended: Exit | None = None
        with anyio.move_on_after(self._remaining()):
            try:
                ended = await self._execution.wait()
            except DeadlineReached:
                await self._overrun()
            except Exception as exc:
                await self._guard.explain(exc, "asking for an exit code")
        if ended is None:
            await self._overrun()
        return ended

    async def _exit_code(self, ended: Exit) -> int:
        killed = ended.code == _KILLED_CODE
        if killed and ended.oom_killed:
            self._fail(
                ResourceLimitExceeded(
                    "the execution was killed for want of memory: "
                    f"memory_mb={self._guard.driver.limits.memory_mb}",
                    hint="raise Resources(memory_mb=…), or use less memory",
                    partial=self._partial(oom_killed=True),
                )
            )
        if (ended.code is None or killed) and not self._stopped and await self._guard.vanished(settle=True):
            self._fail(SandboxGone(f"the sandbox ended during the execution: {self._guard.ended}"))
        if ended.code is None:
            self._fail(ConnectError("the exit code of an execution is unknown", hint="run the command again"))
        return ended.code

    async def _overrun(self) -> NoReturn:
        """The deadline has passed: end the tree, gather what it wrote before, and say so."""
        await self._stop()
        with anyio.move_on_after(DRAIN_SECONDS, shield=True):
            await self._gather_rest()
        if self._guard.lifetime.expired():
            self._guard.ended = self._guard.ended or "its lifetime is over"
            self._fail(SandboxGone(f"the sandbox ended during the execution: {self._guard.ended}"))
        self._fail(self._timed_out())

    async def _end_unread(self) -> None:
        """The deadline has passed while nobody reads; what reads next will say so."""
        try:
            done = await bounded(self._execution.kill)
        except Exception:
            done = False
        if not done and self._result is None:
            await self._guard.abandon("an execution in it could not be ended")

    async def _gather_rest(self) -> None:
        try:
            while (item := await self._execution.receive()) is not None:
                self._collected.add(item)
        except Exception:  # the tree was just ended: a broken connection is no news
            return

    async def _stop(self) -> None:
        """End the tree, whatever is cancelled meanwhile; failing that, end the sandbox."""
        if self._stopped:
            return
        self._stopped = True
        with anyio.CancelScope(shield=True):
            try:
                done = await bounded(self._execution.kill)
            except Exception:
                done = await self._guard.vanished()
            if not done:
                await self._guard.abandon("an execution in it could not be ended")

    def _timed_out(self) -> ExecutionTimeout:
        return ExecutionTimeout(
            f"the execution did not end within {self._timeout:g} s, and was ended",
            partial=self._partial(),
        )

    def _partial(self, *, oom_killed: bool = False) -> ExecResult:
        result = self._collected.result(PARTIAL_EXIT_CODE, rich=self._rich, oom_killed=oom_killed)
        return replace(result, meter=self._operation.meter())

    def _fail(self, error: SandboxError) -> NoReturn:
        self._failure = error
        raise error

    def _remaining(self) -> float:
        return self._deadline - time.monotonic()

    def _require_started(self) -> None:
        if self._stack is None:
            raise ConfigurationError(
                "the process was not started", hint="use it as `async with sb.stream(…) as proc:`"
            )
