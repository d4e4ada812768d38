"""An event loop in a thread, in which a synchronous caller has calls run."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from threading import Event, Thread, get_ident
from typing import Final, Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from sandboxio.environment import seconds_from_environment
from sandboxio.errors import ConfigurationError, SandboxGone

__all__ = ["LoopThread"]

T = TypeVar("T")

_MARGIN_SECONDS: Final = 1.0


class LoopThread:
    """Owns the thread, its loop and the portal into it; `stop` ends all three.

    One that is forgotten is stopped when it is collected or when the interpreter exits.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._stop = weakref.finalize(self, self._state.stop)

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a call in the loop and wait for it.

        An exception that strikes the waiting thread, such as KeyboardInterrupt, cancels the call,
        and goes on only when what the call had begun has been ended.

        Raises:
            SandboxGone: The loop was stopped, so the sandbox is no longer held.
            ConfigurationError: The process was forked since, and threads do not survive that.
        """
        return self._state.call(function)

    def stop(self) -> None:
        """End the loop and wait for the thread. Does nothing the second time."""
        self._stop()


class _State:
    """What the finalizer needs, without a way back to the object whose end it waits for."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ready: Future[BlockingPortal] = Future()
        self._stopped = False
        self._thread = Thread(target=self._run, name="sandboxio-sync", daemon=True)
        self._thread.start()
        try:
            self._portal = self._ready.result()
        except BaseException:
            if self._ready.exception(_patience()) is None:  # interrupted while the loop came up
                self._portal = self._ready.result()
                self.stop()
            raise

    def _run(self) -> None:
        try:
            anyio.run(self._serve)
        except BaseException as exc:
            if not self._ready.done():
                self._ready.set_exception(exc)
            raise

    async def _serve(self) -> None:
        self._over = anyio.Event()
        async with BlockingPortal() as portal:
            self._ready.set_result(portal)
            await self._over.wait()
            await portal.stop(cancel_remaining=True)

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        if os.getpid() != self._process:
            raise ConfigurationError(
                "a synchronous sandbox is used in a process that was forked after it was made",
                hint="connect_sync() to it in the child, or create one there",
            )
        if self._stopped:
            raise _closed()
        call = _Call(function)
        try:
            return self._portal.start_task_soon(call.run).result()
        except CancelledError:  # the loop was stopped by another thread
            raise _closed() from None
        except RuntimeError:
            if self._stopped and not call.begun:  # the same, since the look above
                raise _closed() from None
            raise
        except BaseException:
            if not call.ended.is_set():
                # It may have struck before the call had begun, and nobody waits for that one any more.
                self._portal.start_task_soon(call.give_up).result(_patience())
                if call.begun:
                    call.ended.wait(_patience())
            raise

    def stop(self) -> None:
        if self._stopped or os.getpid() != self._process:
            return
        self._stopped = True
        if get_ident() == self._thread.ident:  # collected by the loop's own thread
            self._over.set()
            return
        try:
            self._portal.start_task_soon(self._over.set)
        except RuntimeError:  # the loop has ended by itself
            return
        self._thread.join(_patience())


class _Call(Generic[T]):
    """A call that can be given up, whether or not the loop has come to it. Its methods run in the loop."""

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._scope: anyio.CancelScope | None = None
        self._given_up = False
        self.ended = Event()

    @property
    def begun(self) -> bool:
        return self._scope is not None

    async def run(self) -> T:
        if self._given_up:
            raise CancelledError
        try:
            with anyio.CancelScope() as self._scope:
                return await self._function()
        finally:
            self.ended.set()
        raise CancelledError

    async def give_up(self) -> None:
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()


def _closed() -> SandboxGone:
    return SandboxGone("this handle was closed", hint="use the sandbox inside its `with` block")


def _patience() -> float:
    """How long to wait for a teardown in the loop, which is itself bounded, in seconds."""
    return 2 * seconds_from_environment("SBX_TEARDOWN_GRACE", 5.0) + _MARGIN_SECONDS
