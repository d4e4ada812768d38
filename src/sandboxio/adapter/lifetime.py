"""How long a sandbox still has, and what that means for an execution."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["Lifetime"]

_SMALL_MARGIN: Final = 0.25
_LARGE_MARGIN: Final = 1.0


class Lifetime:
    """The lifetime that the provider enforces, seen from here.

    Args:
        seconds: What remains now.
        timeout: The sandbox's own timeout, which executions inherit. The default is `seconds`.
        clock: A monotonic clock in seconds.

    Example: `Lifetime(300).execution_timeout(None)` is about 299.
    """

    __slots__ = ("_clock", "_ends_at", "_timeout")

    def __init__(
        self,
        seconds: float,
        *,
        timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._timeout = seconds if timeout is None else timeout
        self._ends_at = clock() + seconds

    @property
    def total(self) -> float:
        """The sandbox's own timeout in seconds."""
        return self._timeout

    def remaining(self) -> float:
        """Seconds until the sandbox ends; negative afterwards."""
        return self._ends_at - self._clock()

    def expired(self) -> bool:
        """Whether it is over."""
        return self.remaining() <= 0

    def execution_timeout(self, requested: float | None) -> float:
        """The bound of an execution that starts now, in seconds.

        One that was asked for stands as it is. An inherited one ends a little before the sandbox
        does, so that the timeout can be told, and the tree ended, while the sandbox still lives.
        """
        if requested is not None:
            return requested
        remaining = self.remaining()
        margin = min(_LARGE_MARGIN, max(_SMALL_MARGIN, 0.1 * remaining))
        return max(min(self._timeout, remaining - margin), 0.001)
