"""Processes in a machine, and whoever listens to them."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Literal, Self, cast
from weakref import WeakSet

from .guest import Guest, GuestStream
from .ports import Ended, MachineError, Output, ProcessConfig

__all__ = ["GuestProcess", "Processes"]

_SIGNALS: Final = {"SIGNAL_SIGKILL": signal.SIGKILL, "SIGNAL_SIGTERM": signal.SIGTERM}
_UNREAD: Final = 2


class _Listener:
    """The events of a process from some moment on. It counts from its making, not from its first use."""

    def __init__(self, process: GuestProcess) -> None:
        self._process = process
        self._events: deque[Output | Ended | MachineError] = deque()
        self._arrived = asyncio.Event()
        self._over = False

    @property
    def full(self) -> bool:
        return len(self._events) >= _UNREAD

    def put(self, event: Output | Ended | MachineError) -> None:
        self._events.append(event)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Output | Ended:
        if self._over:
            raise StopAsyncIteration
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
            if self._over:
                raise StopAsyncIteration
        event = self._events.popleft()
        self._process.taken()
        if isinstance(event, Output):
            return event
        self.close()
        if isinstance(event, MachineError):
            raise event
        return event

    def close(self) -> None:
        self._over = True
        self._events.clear()
        self._arrived.set()
        self._process.leave(self)

    async def aclose(self) -> None:
        self.close()

    def __del__(self) -> None:
        self._over = True
        self._process.taken()


class GuestProcess:
    """A process that was started.

    It is held at its first output until `events` has been called once, so that nothing of a
    process is lost between its start and its first listener.
    """

    def __init__(self, guest: Guest, pid: int, config: ProcessConfig) -> None:
        self._guest = guest
        self._pid = pid
        self._config = config
        self._listeners: WeakSet[_Listener] = WeakSet()  # one that was dropped is no reason to wait
        self._heard = asyncio.Event()
        self._taken = asyncio.Event()
        self._last: Ended | MachineError | None = None

    @property
    def pid(self) -> int:
        """See `Process.pid`."""
        return self._pid

    @property
    def config(self) -> ProcessConfig:
        """See `Process.config`."""
        return self._config

    def events(self) -> AsyncIterator[Output | Ended]:
        """See `Process.events`."""
        listener = _Listener(self)
        if self._last is not None:
            listener.put(self._last)
        else:
            self._listeners.add(listener)
        self._heard.set()
        return listener

    async def send_input(self, data: bytes) -> None:
        """See `Process.send_input`."""
        stream = self._guest.open("process.input", pid=self._pid)
        try:
            await stream.send(data)
            stream.finish()
            await stream.result()
        finally:
            stream.close()

    async def close_input(self) -> None:
        """See `Process.close_input`."""
        await self._guest.call("process.close_input", pid=self._pid)

    async def signal(self, name: str) -> None:
        """See `Process.signal`."""
        number = _SIGNALS.get(name)
        if number is None:
            raise MachineError("invalid_argument", f"invalid signal: {name}")
        await self._guest.call("process.signal", pid=self._pid, number=number)

    def nobody_listens(self) -> None:
        """Drop what it writes until somebody does."""
        self._heard.set()

    def leave(self, listener: _Listener) -> None:
        """A listener wants no more."""
        self._listeners.discard(listener)
        self._taken.set()

    def taken(self) -> None:
        """A listener has taken something."""
        self._taken.set()

    async def relay(self, stream: GuestStream) -> None:
        """Hand on what the process writes until it has ended."""
        last: Ended | MachineError = MachineError("unavailable", "the machine has been shut down")
        try:
            while (piece := await stream.receive()) is not None:
                await self._heard.wait()
                await self._tell(Output(cast("Literal['stdout', 'stderr']", piece[0]), piece[1]))
            last = Ended(**await stream.result())
        except MachineError as exc:
            last = exc
        finally:
            self._last = last
            self._put(last)

    def _put(self, event: Output | Ended | MachineError) -> None:
        for listener in list(self._listeners):
            listener.put(event)

    async def _tell(self, event: Output) -> None:
        self._put(event)
        while any(listener.full for listener in self._listeners):
            self._taken.clear()
            await self._taken.wait()


class Processes:
    """The live processes of a machine."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.live: dict[int, GuestProcess] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, config: ProcessConfig, *, stdin: bool) -> GuestProcess:
        """Start one. It is started even if the caller is cancelled meanwhile."""
        started: asyncio.Future[GuestProcess] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(config, stdin, started))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await started
        except asyncio.CancelledError:
            if not started.cancelled() and started.exception() is None:
                started.result().nobody_listens()
            raise

    async def close(self) -> None:
        """Stop relaying."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, config: ProcessConfig, stdin: bool, started: asyncio.Future[GuestProcess]) -> None:
        try:
            stream = self._guest.open(
                "process.start",
                cmd=config.cmd,
                args=list(config.args),
                envs=dict(config.envs),
                cwd=config.cwd,
                stdin=stdin,
            )
            pid = await stream.reply()
        except MachineError as exc:
            if not started.done():
                started.set_exception(exc)
            return
        process = self.live[pid] = GuestProcess(self._guest, pid, config)
        if started.done():
            process.nobody_listens()
        else:
            started.set_result(process)
        try:
            await process.relay(stream)
        finally:
            if self.live.get(pid) is process:
                del self.live[pid]
