"""The exit codes: they are part of what scripts rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sandboxio import SandboxError

__all__ = [
    "FAILURE",
    "INTERRUPTED",
    "KILLED",
    "OK",
    "READER_GONE",
    "TIMED_OUT",
    "UNABLE",
    "USAGE",
    "of_error",
    "of_execution",
    "of_signal",
]

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
TIMED_OUT: Final = 124
"""A command in the sandbox did not end in time; the code that `timeout` gives."""
UNABLE: Final = 125
"""sandboxio itself failed where any other code would be the command's; the code that `docker run` gives."""
INTERRUPTED: Final = 130
KILLED: Final = 137
"""A command in the sandbox was killed for want of memory, as 128 + SIGKILL."""
READER_GONE: Final = 141
"""Nobody reads the output any more, as 128 + SIGPIPE."""

_SIGNAL_BASE: Final = 128


def of_error(exc: SandboxError, *, otherwise: int = FAILURE) -> int:
    """The code for an error of sandboxio: 2 for what a correct command line would avoid."""
    from sandboxio import BackendNotInstalled, ConfigurationError

    if isinstance(exc, ConfigurationError) and not isinstance(exc, BackendNotInstalled):
        return USAGE
    return otherwise


def of_execution(exc: SandboxError) -> int:
    """The code for an error where the command's own exit codes are passed through, timeouts aside."""
    from sandboxio import ResourceLimitExceeded

    if isinstance(exc, ResourceLimitExceeded):
        return KILLED
    return of_error(exc, otherwise=UNABLE)


def of_signal(number: int) -> int:
    """The code for an end by a signal: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
    return _SIGNAL_BASE + number
