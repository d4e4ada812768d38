"""Release that cancellation cannot interrupt and that cannot last for ever."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from sandboxio.environment import seconds_from_environment
from sandboxio.errors import OrphanedSandboxWarning

__all__ = ["bounded", "grace_seconds", "warn_orphaned"]

_DEFAULT_GRACE: Final = 5.0


def grace_seconds() -> float:
    """How long a teardown may take, in seconds: `SBX_TEARDOWN_GRACE`, or 5.

    Raises:
        ConfigurationError: The variable does not hold a positive number.
    """
    return seconds_from_environment("SBX_TEARDOWN_GRACE", _DEFAULT_GRACE)


async def bounded(action: Callable[[], Awaitable[object]], *, grace: float | None = None) -> bool:
    """Run a release to its end, shielded from cancellation, and say whether it ended in time.

    Args:
        action: What releases; its own errors come through.
        grace: Seconds; the default is `grace_seconds()`.

    Example: `done = await bounded(driver.destroy)`
    """
    with anyio.move_on_after(grace_seconds() if grace is None else grace, shield=True):
        await action()
        return True
    return False


def warn_orphaned(sandbox_id: str, backend: str, reason: str) -> None:
    """Tell that a sandbox may still run at its provider, and how to find it."""
    warnings.warn(
        f"{backend} sandbox {sandbox_id} may still run: {reason}. "
        "It carries the label sandboxio.managed=true; `sandboxio reap --kill` ends it",
        OrphanedSandboxWarning,
        stacklevel=2,
    )
