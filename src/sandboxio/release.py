"""Release that no cancellation interrupts, that cannot last for ever, and that replaces no error.

A shield keeps out the cancellation of a scope, but not a native `Task.cancel()` of asyncio, of which
two in a row are ordinary: a timeout around a call, and a server that shuts down. So what must reach
its end runs in a child task, which only its own shield can see; the caller waits for it and is
cancelled afterwards.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from sandboxio.environment import seconds_from_environment
from sandboxio.errors import ConfigurationError, OrphanedSandboxWarning
from sandboxio.logs import get_logger

__all__ = ["GRACE_VARIABLE", "bounded", "grace_seconds", "resumed", "uninterrupted", "warn_orphaned"]

GRACE_VARIABLE: Final = "SBX_TEARDOWN_GRACE"
DEFAULT_GRACE_SECONDS: Final = 5.0

T = TypeVar("T")


def grace_seconds() -> float:
    """How long a teardown may take, in seconds: `SBX_TEARDOWN_GRACE`, or 5.

    What the variable holds is checked when a sandbox is created. A teardown must not fail for it,
    so a malformed value is 5 here.
    """
    try:
        return seconds_from_environment(GRACE_VARIABLE, DEFAULT_GRACE_SECONDS)
    except ConfigurationError:
        return DEFAULT_GRACE_SECONDS


async def uninterrupted(action: Callable[[], Awaitable[T]]) -> T:
    """Run `action` to its end, whatever is cancelled meanwhile.

    A cancellation surfaces afterwards, at the latest at the next await.

    It must be bounded itself. Its result is lost to a caller that was cancelled, so what has to
    outlive that is stored by the action.

    Example: `await uninterrupted(driver.destroy)`
    """
    results: list[T] = []
    failures: list[Exception] = []

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            try:
                results.append(await action())
            except Exception as exc:
                failures.append(exc)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    if failures:
        raise failures[0]
    return results[0]


async def resumed(action: Callable[[], Awaitable[None]]) -> None:
    """Run `action` to its end like `uninterrupted`, calling it again where that was cut off.

    It costs no task unless it is cut off, so it is for what every operation does.

    Example: `await resumed(execution.aclose)`
    """
    try:
        with anyio.CancelScope(shield=True):
            await action()
    except anyio.get_cancelled_exc_class():  # a native cancellation, which no shield keeps out
        await uninterrupted(action)
        raise


async def bounded(action: Callable[[], Awaitable[object]], *, grace: float | None = None) -> bool:
    """Run a release uninterrupted, and say whether it ended in time.

    Args:
        action: What releases; its own errors come through.
        grace: Seconds; the default is `grace_seconds()`.

    Example: `done = await bounded(driver.destroy)`
    """

    async def release() -> bool:
        with anyio.move_on_after(grace_seconds() if grace is None else grace):
            await action()
            return True
        return False

    return await uninterrupted(release)


def warn_orphaned(sandbox_id: str, backend: str, reason: str) -> None:
    """Tell that a sandbox may still run at its provider, and how to find it.

    A warning that the caller's filters turn into an error never replaces an exception in flight.
    """
    text = (
        f"{backend} sandbox {sandbox_id} may still run: {reason}. "
        "It carries the label sandboxio.managed=true; `sandboxio reap --kill` ends it"
    )
    in_flight = sys.exception()
    try:
        warnings.warn(text, OrphanedSandboxWarning, stacklevel=2)
    except OrphanedSandboxWarning:
        if in_flight is None:
            raise
        get_logger().error(text)
        in_flight.add_note(text)
