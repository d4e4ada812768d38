"""The end of one execution's process tree: once, whole, and whatever is cancelled meanwhile."""

from __future__ import annotations

import anyio

from sandboxio.adapter.driver import Execution
from sandboxio.adapter.guard import Guard
from sandboxio.release import grace_seconds, uninterrupted, warn_orphaned

__all__ = ["TreeEnd"]

_REASON = "an execution in it could not be ended"


class TreeEnd:
    """Ends a tree; where that cannot be done, it ends the sandbox rather than leave it running.

    Args:
        guard: The gate to the driver.
        execution: Whose tree it is.
    """

    def __init__(self, guard: Guard, execution: Execution) -> None:
        self._guard = guard
        self._execution = execution
        self._lock = anyio.Lock()
        self._orphaned: str | None = None
        self.reached = False
        self.overdue = False

    async def reach(self) -> None:
        """End the tree. Every caller waits until it has ended."""
        try:
            await uninterrupted(self._reach_once)
        finally:
            reason, self._orphaned = self._orphaned, None
            if reason is not None:
                warn_orphaned(self._guard.identity.id, self._guard.identity.backend, reason)

    async def reach_unread(self) -> None:
        """End the tree from another event loop, unless its leader has ended by itself.

        `overdue` then tells the reader, who may come later, that its end was not its own.
        """
        done = False
        try:
            with anyio.move_on_after(grace_seconds()):
                if await self._execution.poll() is None:
                    self.overdue = True
                    await self._execution.kill()
                done = True
        except Exception:
            done = False
        if not done and not self.reached:
            reason = await self._guard.abandon(_REASON)
            if reason is not None:
                warn_orphaned(self._guard.identity.id, self._guard.identity.backend, reason)

    async def _reach_once(self) -> None:
        async with self._lock:
            if self.reached:
                return
            done = False
            try:
                with anyio.move_on_after(grace_seconds()):
                    await self._execution.kill()
                    done = True
            except Exception:
                done = await self._guard.vanished()
            if not done:
                self._orphaned = await self._guard.abandon(_REASON)
            self.reached = True
