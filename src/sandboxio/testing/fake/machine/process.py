"""A virtual process, and the tree of processes that one execution is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sandboxio.testing.fake.machine.calls import (
    PENDING,
    Body,
    Call,
    Exited,
    NotSimulatedError,
    OutOfMemoryError,
    Read,
    Write,
)
from sandboxio.testing.fake.machine.streams import Channel

if TYPE_CHECKING:
    from sandboxio.testing.fake.machine.kernel import Kernel

__all__ = ["KILLED", "Execution", "Process"]

KILLED: Final = 137
_BROKEN_PIPE: Final = 141


class Process:
    """A virtual process: a generator with descriptors, variables and a folder."""

    def __init__(
        self,
        kernel: Kernel,
        execution: Execution,
        argv: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        channels: Mapping[int, Channel],
    ) -> None:
        self.kernel = kernel
        self.execution = execution
        self.pid = kernel.next_pid()
        self.argv = list(argv)
        self.variables = dict(variables)
        self.folder = folder
        self.channels = dict(channels)
        self.exit_code: int | None = None
        self.waits_for: Call | None = None
        self.children: list[Process] = []
        self._body: Body | None = None
        self._stepping = False
        self._held = tuple(self.channels.values())
        for channel in self._held:
            channel.open()

    def begin(self, program: Callable[[Process], Body]) -> None:
        """Have it run a program from the next step on."""
        self._body = program(self)

    def step(self) -> bool:
        """Run up to the next thing to wait for, and say whether anything happened."""
        assert self._body is not None
        result: object = None
        self._stepping = True
        try:
            if self.waits_for is not None:
                try:
                    result = self.waits_for.attempt(self)
                except OSError as exc:
                    self.waits_for = self._body.throw(exc)
                    return True
                if result is PENDING:
                    return False
            self.waits_for = self._body.send(result)
        except StopIteration as stop:
            self.end(stop.value)
        except Exited as exited:
            self.end(exited.code)
        except BrokenPipeError:
            self.end(_BROKEN_PIPE)
        except OSError:
            self.end(1)
        except OutOfMemoryError:
            self.execution.oom_kills += 1
            self.kernel.oom_kills += 1
            self.end(KILLED)
        except NotSimulatedError as exc:
            self.execution.failure = exc
            self.execution.kill()
        finally:
            self._stepping = False
        return True

    def end(self, code: int) -> None:
        """End here and now."""
        if self.exit_code is not None:
            return
        self.exit_code = code
        self.kernel.forget(self)
        body, self._body = self._body, None
        for channel in self._held:
            channel.close()
        if body is not None and not self._stepping:
            body.close()

    def spawn(
        self,
        argv: Sequence[str],
        program: Callable[[Process], Body] | None = None,
        *,
        channels: Mapping[int, Channel] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a child; without a program it is the one that its arguments name."""
        child = Process(
            self.kernel,
            self.execution,
            argv,
            self.variables if variables is None else variables,
            self.folder,
            self.channels if channels is None else channels,
        )
        self.children.append(child)
        self.kernel.adopt(child, program or self.kernel.exec)
        return child

    def signal(self, pid: int, number: int) -> None:
        """End a process of this sandbox by a signal.

        Raises:
            ProcessLookupError: There is none.
            Exited: It was this one.
        """
        target = self.kernel.processes.get(pid)
        if target is None:
            raise ProcessLookupError(f"no process {pid}")
        if number == 0:
            return
        if target is self:
            raise Exited(128 + number)
        target.end(128 + number)

    def read(self, descriptor: int, size: int) -> Generator[Call, Any, bytes]:
        """Bytes of a descriptor; none at its end."""
        data: bytes = yield Read(descriptor, size)
        return data

    def write(self, descriptor: int, data: bytes) -> Generator[Call, Any, None]:
        """Write all of the bytes."""
        if data:
            yield Write(descriptor, data)

    def path(self, path: str) -> str:
        """A path as seen from the process's folder."""
        return path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path}"


class Execution:
    """A tree of processes with one leader, whatever sessions they make for themselves."""

    def __init__(self, kernel: Kernel, deadline: float) -> None:
        self.kernel = kernel
        self.deadline = deadline
        self.overdue = False
        self.killed = False
        self.failure: Exception | None = None
        self.missing = False
        self.oom_kills = 0
        self.leader: Process | None = None
        self.host_input: Channel | None = None

    @property
    def processes(self) -> list[Process]:
        """Those of its processes that run."""
        return [process for process in self.kernel.processes.values() if process.execution is self]

    @property
    def exit_code(self) -> int | None:
        """The leader's."""
        return None if self.leader is None else self.leader.exit_code

    def kill(self) -> None:
        """End every process of the tree."""
        self.killed = self.killed or self.exit_code is None
        for process in self.processes:
            process.end(KILLED)
        self.kernel.notify()
