"""An event loop in a thread, in which a synchronous caller has calls run."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Event, Thread, get_ident
from typing import Final, Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from sandboxio.errors import ConfigurationError, CreationError, SandboxGone
from sandboxio.logs import warn
from sandboxio.release import grace_seconds

__all__ = ["LoopThread"]

T = TypeVar("T")

_ANSWER_SECONDS: Final = 1.0
"""How long a loop that is not blocked may take to answer."""

_LOOK_SECONDS: Final = 0.5
"""How long a caller waits at a time: a signal does not wake a thread that was only about to wait."""


class LoopThread:
    """Owns the thread, its loop and the portal into it; `stop` ends all three.

    One that is forgotten is stopped when it is collected or when the interpreter exits, with a
    `ResourceWarning` that names what it served.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._forgotten = weakref.finalize(self, self._state.forgotten)

    @property
    def alive(self) -> bool:
        """Whether it takes calls: it was not stopped and has not broken down."""
        return self._state.alive

    def serves(self, words: str) -> None:
        """Say what the loop is for, as the warning about a forgotten one names it."""
        self._state.served = words

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a call in the loop and wait for it.

        An exception that strikes the waiting thread, such as KeyboardInterrupt, cancels the call,
        and goes on when what the call had begun has been ended. Where that takes longer than a
        teardown may, or where the loop is blocked and does not answer, it goes on before.

        Raises:
            SandboxGone: The loop was stopped, so the sandbox is no longer held.
            ConfigurationError: The process was forked since, and threads do not survive that; or
                the call comes from the loop's own thread, which would wait for itself.
        """
        return self._state.call(function)

    def stop(self) -> None:
        """End the loop and wait for the thread, within bounds. Does nothing the second time."""
        self._forgotten.detach()
        self._state.stop()


class _State:
    """What the finalizer needs, without a way back to the object whose end it waits for."""

    def __init__(self) -> None:
        self.served = "a synchronous sandbox"
        self.stopped = False
        self._ended = False
        self._process = os.getpid()
        self._ready = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="sandboxio-sync", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as exc:
            raise _not_started() from exc
        try:
            self._ready.wait()
        except BaseException:
            if self._ready.wait(_ANSWER_SECONDS) and self._failure is None:
                self.stop()  # interrupted while the loop came up
            self.stopped = True
            raise
        if self._failure is not None:
            raise _not_started() from self._failure

    @property
    def alive(self) -> bool:
        return not self.stopped and not self._ended and self._thread.is_alive()

    def _run(self) -> None:
        # What a call raises has reached its caller through the portal, even where it ends the loop
        # as well. A thread has nobody else to tell, and the library never prints.
        with suppress(BaseException):
            try:
                anyio.run(self._serve, backend="asyncio")
            except Exception as exc:
                self._failure = exc
                raise
            finally:
                self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = anyio.Event()
        async with BlockingPortal() as self._portal:
            self._ready.set()
            try:
                if not self.stopped:  # it may have come up too late
                    await self._over.wait()
            finally:
                self._ended = True  # before the portal refuses calls, and long before the thread has gone
            await self._portal.stop(cancel_remaining=True)

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        if os.getpid() != self._process:
            raise ConfigurationError(
                "a synchronous sandbox is used in a process that was forked after it was made",
                hint="connect_sync() to it in the child, or create one there",
            )
        if get_ident() == self._thread.ident:
            raise ConfigurationError(
                "a synchronous sandbox is used by what runs in its own loop, such as an audit sink",
                hint="use the asynchronous API there",
            )
        if not self.alive:
            raise _closed()
        call = _Call(function)
        try:
            return _result(self._portal.start_task_soon(call.run))
        except CancelledError:  # the loop was stopped by another thread
            raise _closed() from None
        except RuntimeError:
            if not call.begun:  # the portal's own: the loop has ended since the look above
                raise _closed() from None
            raise
        except BaseException:
            if not call.ended.is_set():
                # It may have struck before the call had begun, and nobody waits for that one any more.
                self._soon(call.give_up)
                if call.answered.wait(_ANSWER_SECONDS) and call.begun:
                    call.ended.wait(_patience())
            raise

    def _soon(self, function: Callable[[], object]) -> None:
        """Have the loop call a function, without waiting until it does: it may be blocked."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(function)

    def _signal(self) -> bool:
        """Let the loop end, and say whether it was this call that did."""
        if self.stopped or os.getpid() != self._process:
            return False
        self.stopped = True
        self._soon(self._over.set)
        return True

    def stop(self) -> None:
        if self._signal() and get_ident() != self._thread.ident:
            self._thread.join(_patience())

    def forgotten(self) -> None:
        """Called when nothing refers to the loop any more, by whatever thread, so it must not wait."""
        if self._signal():
            warn(
                f"{self.served} was never closed: use it in a `with` block, or kill() or detach() it. "
                "Its thread ends now; the sandbox may live on to the end of its lifetime",
                ResourceWarning,
            )


class _Call(Generic[T]):
    """A call that can be given up, whether or not the loop has come to it. Its methods run in the loop."""

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._scope: anyio.CancelScope | None = None
        self._given_up = False
        self.answered = Event()
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

    def give_up(self) -> None:
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()
        self.answered.set()


def _result(future: Future[T]) -> T:
    try:
        while not future.done():
            with suppress(TimeoutError):
                future.exception(_LOOK_SECONDS)
        return future.result()
    finally:
        del future  # else an exception would refer to itself, by way of this frame


def _not_started() -> CreationError:
    return CreationError(
        "a thread with an event loop could not be started",
        hint="close what is no longer used: each synchronous sandbox needs a thread and some descriptors",
    )


def _closed() -> SandboxGone:
    return SandboxGone("this handle was closed", hint="use the sandbox inside its `with` block")


def _patience() -> float:
    """How long to wait for a teardown in the loop, which is itself bounded, in seconds."""
    return 2 * grace_seconds() + _ANSWER_SECONDS
