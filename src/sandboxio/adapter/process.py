"""One execution from its start to its end: the deadline, the drain and the end of its tree.

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

from sandboxio.adapter.driver import DeadlineReached, Execution, Exit, OutputDropped, ProcessHandle
from sandboxio.adapter.guard import Guard
from sandboxio.adapter.input import StandardInput
from sandboxio.adapter.operation import Operation
from sandboxio.adapter.output import CollectedOutput
from sandboxio.adapter.tree_end import TreeEnd
from sandboxio.adapter.validation import checked_input
from sandboxio.adapter.watchdog import Watch, watch
from sandboxio.errors import (
    ConfigurationError,
    ConnectError,
    ExecutionError,
    ExecutionTimeout,
    ResourceLimitExceeded,
    SandboxError,
    SandboxGone,
)
from sandboxio.models import ExecResult, OutputChunk, Pipe, RichOutput
from sandboxio.release import resumed

__all__ = ["PARTIAL_EXIT_CODE", "Process"]

PARTIAL_EXIT_CODE: Final = -1
DRAIN_SECONDS: Final = 0.5
_FIRST_POLL_SECONDS: Final = 0.1
_LAST_POLL_SECONDS: Final = 0.5
_POLL_GROWTH: Final = 1.5
_POLL_BOUND_SECONDS: Final = 2.0
_AFTER_LIFETIME_SECONDS: Final = 5.0
_KILLED_CODE: Final = 137

_Output = OutputChunk | RichOutput | OutputDropped


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
        self._input = None if stdin is None else StandardInput(stdin, operation)
        self._rich = rich
        self._watched = watched
        self._collected = CollectedOutput()
        self._stack: AsyncExitStack | None = None
        self._left = False
        self._reading = False
        self._slot: list[_Output | None] = []
        self._output_ended = False
        self._exit: Exit | None = None
        self._result: ExecResult | None = None
        self._failure: SandboxError | None = None
        self._poll_interval = _FIRST_POLL_SECONDS
        self._drain_until = 0.0

    def __repr__(self) -> str:
        if self._failure is not None:
            state = f"failed with {self._failure.code}"
        elif self._result is not None:
            state = f"ended with exit code {self._result.exit_code}"
        elif self._left:
            state = "left before its end"
        else:
            state = "prepared" if self._stack is None else "running"
        return f"<Process {state}>"

    @property
    def returncode(self) -> int | None:
        """The exit code, or `None` while it is not known."""
        return None if self._result is None else self._result.exit_code

    @property
    def program_missing(self) -> bool:
        """Whether it ended because its program was not there."""
        return self._result is not None and self._exit is not None and self._exit.missing

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise ConfigurationError(
                "this process was started before", hint="call stream() again for another run"
            )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._operation)
            self._execution = await self._begin()
            self._tree = TreeEnd(self._guard, self._execution)
            stack.push_async_exit(self._end)
            if self._watched:
                stack.callback(self._keep_deadline_unread().cancel)
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
            await self._tree.reach()

    async def write(self, data: bytes | str) -> None:
        """Write to standard input; text as UTF-8. Waits while the process does not read."""
        content = checked_input(data)
        self._require_started()
        if self._failure is not None:
            raise self._failure
        if self._result is not None or self._left:
            raise ExecutionError("the process has ended", hint="write while it runs")
        failure: Exception | None = None
        written = False
        with anyio.move_on_after(self._remaining()):
            try:
                await self._open_input().write(self._handle, content)
                written = True
            except Exception as exc:
                failure = exc
        if failure is not None:
            await self._lost(failure, "writing standard input")
        if not written:
            await self._past_deadline()

    async def close_stdin(self) -> None:
        """Let the process read end of file, behind all that was written. Does nothing the second time."""
        self._require_started()
        source = self._input
        if source is None or self._result is not None or self._failure is not None or self._left:
            return
        failure: Exception | None = None
        closed = False
        with anyio.move_on_after(self._remaining()):
            try:
                await source.close(self._handle)
                closed = True
            except Exception as exc:
                failure = exc
        if failure is not None:
            await self._lost(failure, "closing standard input")
        if not closed:
            await self._past_deadline()

    async def _begin(self) -> Execution:
        self._guard.require_running()
        lifetime = self._guard.lifetime
        self._timeout = lifetime.execution_timeout(self._requested_timeout)
        bound = min(self._timeout, max(lifetime.remaining(), 0) + _AFTER_LIFETIME_SECONDS)
        self._deadline = time.monotonic() + bound
        self._next_poll = time.monotonic() + self._poll_interval
        execution: Execution | None = None
        try:
            with anyio.move_on_after(bound):
                execution = await self._start(self._timeout)
        except DeadlineReached:
            execution = None
        except Exception as exc:
            await self._guard.explain(exc, "starting an execution")
        if execution is None:
            raise self._timed_out()
        return execution

    def _keep_deadline_unread(self) -> Watch:
        try:
            return watch(self._remaining(), self._tree.reach_unread)
        except RuntimeError as exc:
            raise ConnectError(
                "this process can start no more threads, so a stream's deadline could not be kept",
                hint="raise the limit on threads, or use run()",
            ) from exc

    async def _end(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left = True
        try:
            if self._result is None:
                await self._tree.reach()
        finally:
            await resumed(self._execution.aclose)

    async def _next(self) -> _Output | None:
        """The next output, or `None` at its end, which is at most the drain after the leader's end."""
        self._require_started()
        if self._failure is not None:
            raise self._failure
        if self._reading:
            raise ConfigurationError(
                "another task is reading this process", hint="read a process from one task at a time"
            )
        self._reading = True
        try:
            return await self._read()
        finally:
            self._reading = False

    async def _read(self) -> _Output | None:
        if self._output_ended:
            return None
        while not self._slot:
            now = time.monotonic()
            if self._exit is not None:
                if now >= self._drain_until:
                    self._slot.append(None)
                    break
                await self._fetch(self._drain_until)
            elif now >= self._deadline:
                await self._past_deadline()
            elif now >= self._next_poll:
                await self._poll()
            else:
                await self._fetch(min(self._deadline, self._next_poll))
        item = self._slot.pop()
        if item is None:
            self._output_ended = True
        elif not isinstance(item, OutputDropped):
            self._operation.bytes_out += len(item.data)
        return item

    async def _fetch(self, until: float) -> None:
        """Put the next output into the slot, where no cancellation can lose it."""
        failure: Exception | None = None
        with anyio.move_on_after(until - time.monotonic()):
            try:
                if self._input is not None and self._input.pending:
                    await self._input.feed_during(self._receive, self._handle)
                else:
                    await self._receive()
            except Exception as exc:
                failure = exc
        if failure is not None:
            await self._lost(failure, "reading output")

    async def _receive(self) -> None:
        self._slot.append(await self._execution.receive())

    async def _poll(self) -> None:
        """Ask whether the leader has ended; an answer that does not come is a no."""
        self._poll_interval = min(self._poll_interval * _POLL_GROWTH, _LAST_POLL_SECONDS)
        failure: Exception | None = None
        with anyio.move_on_after(_POLL_BOUND_SECONDS):
            try:
                self._exit = await self._execution.poll()
            except Exception as exc:
                failure = exc
        if failure is not None:
            await self._lost(failure, "asking for the state of an execution")
        now = time.monotonic()
        self._next_poll = now + self._poll_interval
        self._drain_until = now + DRAIN_SECONDS

    async def _conclude(self, *, streamed: bool) -> ExecResult:
        """Turn the leader's end into a result, once."""
        if self._failure is not None:
            raise self._failure
        if self._result is None:
            if self._exit is None:
                await self._await_exit()
            assert self._exit is not None
            if self._tree.overdue:
                await self._overrun()
            code = await self._exit_code(self._exit)
            self._operation.conclude(code)
            result = self._collected.result(code, rich=self._rich, oom_killed=self._exit.oom_killed)
            self._result = replace(result, streamed=streamed, meter=self._operation.meter())
        return self._result

    async def _await_exit(self) -> None:
        failure: Exception | None = None
        with anyio.move_on_after(self._remaining()):
            try:
                self._exit = await self._execution.wait()
            except Exception as exc:
                failure = exc
        if failure is not None:
            await self._lost(failure, "asking for an exit code")
        if self._exit is None:
            await self._past_deadline()

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
        if (
            (ended.code is None or killed)
            and not self._tree.reached
            and await self._guard.vanished(settle=True)
        ):
            self._fail(self._gone())
        if ended.code is None:
            self._fail(ConnectError("the exit code of an execution is unknown", hint="run the command again"))
        return ended.code

    async def _past_deadline(self) -> None:
        """The deadline has passed. A leader that ended before it counts; otherwise the tree is ended.

        Raises:
            ExecutionTimeout: It had not ended.
            SandboxGone: The sandbox's own end came first.
        """
        await self._poll()
        if self._exit is None or self._tree.overdue:
            await self._overrun()

    async def _overrun(self) -> NoReturn:
        await self._tree.reach()
        with anyio.move_on_after(DRAIN_SECONDS, shield=True):
            await self._gather_rest()
        if self._guard.lifetime.expired():
            self._guard.ended = self._guard.ended or "its lifetime is over"
            self._fail(self._gone())
        self._fail(self._timed_out())

    async def _gather_rest(self) -> None:
        try:
            while (item := await self._execution.receive()) is not None:
                self._collected.add(item)
        except Exception:  # the tree was just ended: a broken connection is no news
            return

    async def _lost(self, exc: Exception, doing: str) -> NoReturn:
        if isinstance(exc, DeadlineReached):
            await self._overrun()
        try:
            await self._guard.explain(exc, doing)
        except (ConfigurationError, ExecutionError):  # of the caller's own making: it runs on
            raise
        except SandboxError as error:
            self._failure = error
            raise

    def _gone(self) -> SandboxGone:
        return SandboxGone(f"the sandbox ended during the execution: {self._guard.ended}")

    def _timed_out(self) -> ExecutionTimeout:
        return ExecutionTimeout(
            f"the execution did not end within {self._timeout:.3g} s, and was ended",
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

    @property
    def _handle(self) -> ProcessHandle:
        """The execution as a process, which it is wherever there is input."""
        return cast(ProcessHandle, self._execution)

    def _open_input(self) -> StandardInput:
        if self._input is None:
            raise ConfigurationError(
                "the standard input of this process is not open", hint="give stream(…, stdin=PIPE)"
            )
        return self._input

    def _require_started(self) -> None:
        if self._stack is None:
            raise ConfigurationError(
                "the process was not started", hint="use it as `async with sb.stream(…) as proc:`"
            )
