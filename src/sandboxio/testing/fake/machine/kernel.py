"""A tiny operating system: a scheduler of processes that are generators, on a virtual clock.

Nothing runs on the host. A process yields what it waits for; the scheduler resumes it when that is
there. When everything that an execution waits for is the clock, the clock is moved forward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio

from sandboxio.testing.fake.clock import VirtualClock
from sandboxio.testing.fake.machine.calls import Body, Read, Sleep, Wait, Write
from sandboxio.testing.fake.machine.process import KILLED, Execution, Process
from sandboxio.testing.fake.machine.tree import FileTree
from sandboxio.testing.fake.network import FakeNetwork

__all__ = ["Kernel"]

_STEPS_AT_ONCE: Final = 20_000


class Kernel:
    """All processes of one sandbox, and what they share.

    Args:
        clock: The time.
        tree: The files.
        network: What can be reached.
        memory_mb: How much memory one process can take, in MiB.
        ends_at: The end of the sandbox's lifetime, on the clock.
        exec: The program that runs what a process's arguments say.
    """

    def __init__(
        self,
        clock: VirtualClock,
        tree: FileTree,
        network: FakeNetwork,
        *,
        memory_mb: int,
        ends_at: float,
        exec: Callable[[Process], Body],  # noqa: A002 -- the system's own word
    ) -> None:
        self.clock = clock
        self.tree = tree
        self.network = network
        self.memory_mb = memory_mb
        self.ends_at = ends_at
        self.exec = exec
        self.oom_kills = 0
        self.processes: dict[int, Process] = {}
        self._last_pid = 1
        self._changed: anyio.Event | None = None

    def next_pid(self) -> int:
        """A number that no process had before."""
        self._last_pid += 1
        return self._last_pid

    def adopt(self, process: Process, program: Callable[[Process], Body]) -> None:
        """Take in a process, and have it run a program."""
        process.begin(program)
        self.processes[process.pid] = process

    def forget(self, process: Process) -> None:
        """Let go of a process that has ended."""
        self.processes.pop(process.pid, None)

    def settle(self, enough: Callable[[], bool]) -> bool:
        """Run processes until that is enough, nothing can run, or it has been long.

        Returns:
            Whether there may be more to run.
        """
        happened = False
        for _ in range(_STEPS_AT_ONCE):
            if enough():
                break
            stepped = [
                process.step()
                for process in list(self.processes.values())
                if process.exit_code is None and not process.execution.overdue
            ]
            if not any(stepped):
                if happened:
                    self.notify()
                return False
            happened = True
        if happened:
            self.notify()
        return True

    def pass_time(self, execution: Execution) -> bool:
        """Move the clock to the next moment at which something happens, if an execution waits for it.

        Returns:
            `False` when the execution waits for something that no clock brings.
        """
        leader = execution.leader
        if leader is None or not self._clock_bound(leader):
            return False
        running = {process.execution for process in self.processes.values()}
        bounded = [other for other in running if other.exit_code is None and not other.overdue]
        moments = [
            moment for process in self.processes.values() if (moment := _wakes_at(process)) is not None
        ]
        self.clock.advance_to(min([*moments, *(other.deadline for other in bounded), self.ends_at]))
        for other in bounded:
            wakes = [_wakes_at(process) for process in other.processes]
            in_time = any(moment is not None and moment <= other.deadline for moment in wakes)
            other.overdue = other.deadline <= self.clock() and not in_time
        self.notify()
        return True

    def _clock_bound(self, process: Process) -> bool:
        """Whether what a process waits for, through whom it waits for, is a moment of the clock."""
        call = process.waits_for
        if isinstance(call, Wait):
            return any(self._clock_bound(child) for child in call.processes if child.exit_code is None)
        if isinstance(call, Read) and process.channels[call.descriptor] is process.execution.host_input:
            return False
        if isinstance(call, (Read, Write)):
            return any(_wakes_at(other) is not None for other in process.execution.processes)
        return isinstance(call, Sleep)

    def shut_down(self) -> None:
        """End every process."""
        for process in list(self.processes.values()):
            process.end(KILLED)
        self.notify()

    async def changed(self) -> None:
        """Wait until something has happened."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def notify(self) -> None:
        """Wake whoever waits for something to happen."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def _wakes_at(process: Process) -> float | None:
    return process.waits_for.wakes_at if isinstance(process.waits_for, Sleep) else None
