"""What a virtual process can wait for, and the ways in which it can end beside returning."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from sandboxio.testing.fake.machine.process import Process

__all__ = [
    "PENDING",
    "Block",
    "Body",
    "Call",
    "Exited",
    "NotSimulatedError",
    "OutOfMemoryError",
    "Read",
    "Sleep",
    "Tick",
    "Wait",
    "Write",
]

PENDING: Final = object()

Body = Generator["Call", Any, int]


class NotSimulatedError(Exception):
    """Something was asked of the fake that it does not do, and does not pretend to."""


class OutOfMemoryError(Exception):
    """A process took more memory than its sandbox has."""


class Exited(Exception):
    """A process ends with this code from wherever it is."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Call(Protocol):
    """What a process can wait for."""

    def attempt(self, process: Process) -> object:
        """The result, or `PENDING`."""
        ...


class Read:
    """Wait for bytes of a descriptor; no bytes are its end."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self._size = size

    def attempt(self, process: Process) -> object:
        """Read what is there."""
        data = process.channels[self.descriptor].read(self._size)
        return PENDING if data is None else data


class Write:
    """Wait until all bytes were taken."""

    def __init__(self, descriptor: int, data: bytes) -> None:
        self._descriptor = descriptor
        self._rest = memoryview(data)

    def attempt(self, process: Process) -> object:
        """Write what fits."""
        while self._rest:
            taken = process.channels[self._descriptor].write(self._rest)
            if not taken:
                return PENDING
            self._rest = self._rest[taken:]
        return None


class Sleep:
    """Wait for a moment of the clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.wakes_at: float | None = None

    def attempt(self, process: Process) -> object:
        """See whether the moment has come."""
        now = process.kernel.clock()
        if self.wakes_at is None:
            self.wakes_at = now + self._seconds
        return None if now >= self.wakes_at else PENDING


class Tick:
    """Let others run, and wait for nothing."""

    def attempt(self, process: Process) -> object:
        """At once."""
        return None


class Block:
    """Wait for what never comes."""

    def attempt(self, process: Process) -> object:
        """Never."""
        return PENDING


class Wait:
    """Wait for other processes to end; gives the exit code of the last of them."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = processes

    def attempt(self, process: Process) -> object:
        """See whether all have ended."""
        codes = [child.exit_code for child in self.processes]
        return PENDING if None in codes else (codes[-1] if codes else 0)
