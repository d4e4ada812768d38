"""The time of a fake provider: it passes only when somebody says so or sleeps."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["VirtualClock"]


class VirtualClock:
    """A clock in seconds. Waiting on it takes no real time: it is moved to the moment awaited.

    Example: `fake.clock.advance(60)`
    """

    __slots__ = ("_now", "_watchers")

    def __init__(self) -> None:
        self._now = 0.0
        self._watchers: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<VirtualClock at {self._now:g} s>"

    def __call__(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass.

        Raises:
            ValueError: They are negative.
        """
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self.advance_to(self._now + seconds)

    def advance_to(self, moment: float) -> None:
        """Let time pass up to a moment; one in the past changes nothing."""
        if moment > self._now:
            self._now = moment
            for watcher in self._watchers:
                watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this whenever time has passed."""
        self._watchers.append(watcher)
