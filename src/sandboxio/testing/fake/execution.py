"""A tree of virtual processes as the adapter kit sees it: an execution that is read, fed and killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.lowlevel

from sandboxio.adapter.driver import DeadlineReached, Exit
from sandboxio.models import OutputChunk
from sandboxio.testing.fake.machine.process import Execution, Process
from sandboxio.testing.fake.machine.streams import (
    PIPE_BYTES,
    Channel,
    NullDevice,
    Pipe,
    PipeReader,
    PipeWriter,
)
from sandboxio.testing.fake.provider import Provider
from sandboxio.testing.fake.sandbox import VirtualSandbox
from sandboxio.testing.fake.shell.program import Program

__all__ = ["FakeExecution"]


class FakeExecution:
    """One execution. Its processes run as far as they can at once, and on when somebody waits for them."""

    def __init__(
        self,
        provider: Provider,
        sandbox: VirtualSandbox,
        program: Program,
        argv: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        timeout: float,
        *,
        open_stdin: bool = False,
        ended: Callable[[Execution], None] = lambda execution: None,
    ) -> None:
        self._provider = provider
        self._sandbox = sandbox
        self._kernel = sandbox.kernel
        self._ended = ended
        self._stdin = Pipe()
        self._streams = (("stdout", Pipe()), ("stderr", Pipe()))
        self._execution = Execution(self._kernel, self._kernel.clock() + timeout)
        channels: dict[int, Channel] = {0: NullDevice()}
        if open_stdin:
            self._stdin.writers = 1
            channels[0] = self._execution.host_input = PipeReader(self._stdin)
        for descriptor, (_, pipe) in enumerate(self._streams, start=1):
            pipe.readers = 1
            channels[descriptor] = PipeWriter(pipe)
        leader = Process(self._kernel, self._execution, argv, variables, folder, channels)
        self._execution.leader = leader
        self._kernel.adopt(leader, program)
        self._kernel.settle(lambda: False)

    async def receive(self) -> OutputChunk | None:
        """The next output. Time passes when nothing but the clock is waited for."""
        await anyio.lowlevel.checkpoint()
        while True:
            chunk = self._take()
            if chunk is not None:
                return chunk
            if self._execution.exit_code is not None or all(pipe.at_end for _, pipe in self._streams):
                self._raise_failure()
                return None
            await self._proceed(self._has_news)

    async def poll(self) -> Exit | None:
        """How the leader ended, if it has."""
        return self._exit()

    async def wait(self) -> Exit:
        """Wait for the leader."""
        await anyio.lowlevel.checkpoint()
        while (ended := self._exit()) is None:
            await self._proceed(lambda: self._execution.exit_code is not None)
        return ended

    async def send(self, data: memoryview) -> int:
        """Give input, as much as the pipe takes."""
        await anyio.lowlevel.checkpoint()
        while True:
            self._check()
            if self._stdin.readers == 0 or self._execution.exit_code is not None:
                raise anyio.BrokenResourceError
            taken = self._stdin.write(data)
            if taken:
                self._kernel.notify()
                return taken
            self._kernel.settle(lambda: not self._stdin.full)
            if self._stdin.full and self._stdin.readers:
                await self._kernel.changed()

    async def send_eof(self) -> None:
        """Close the input."""
        self._stdin.writers = 0
        self._kernel.notify()
        await anyio.lowlevel.checkpoint()

    async def kill(self) -> None:
        """End the whole tree."""
        self._provider.require_reachable()
        self._execution.kill()
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Let what is written from now on go nowhere."""
        for _, pipe in self._streams:
            pipe.discard()
        self._stdin.writers = 0
        self._ended(self._execution)
        self._kernel.notify()

    def _take(self) -> OutputChunk | None:
        for name, pipe in self._streams:
            if not pipe.empty:
                data = pipe.read(PIPE_BYTES)
                assert data
                return OutputChunk("stdout" if name == "stdout" else "stderr", data)
        return None

    def _has_news(self) -> bool:
        return self._execution.exit_code is not None or any(not pipe.empty for _, pipe in self._streams)

    def _exit(self) -> Exit | None:
        code = self._execution.exit_code
        if code is None:
            return None
        self._raise_failure()
        return Exit(code, oom_killed=self._execution.oom_kills > 0, missing=self._execution.missing)

    def _raise_failure(self) -> None:
        self._provider.require_running(self._sandbox)
        if self._execution.failure is not None:
            raise self._execution.failure

    def _check(self) -> None:
        """Whether it can go on at all."""
        self._provider.require_running(self._sandbox)
        if self._execution.overdue:
            raise DeadlineReached

    async def _proceed(self, enough: Callable[[], bool]) -> None:
        """Let processes run until that is enough, or let time pass, or wait for somebody else."""
        self._check()
        if self._kernel.settle(enough):
            await anyio.lowlevel.checkpoint()
        elif not enough() and not self._kernel.pass_time(self._execution):
            await self._kernel.changed()
