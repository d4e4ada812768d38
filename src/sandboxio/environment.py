"""Reading what an environment variable sets, with an error that names the variable."""

from __future__ import annotations

import math
import os

from sandboxio.errors import ConfigurationError

__all__ = ["seconds_from_environment"]


def seconds_from_environment(variable: str, default: float) -> float:
    """A positive, finite number of seconds from an environment variable.

    Raises:
        ConfigurationError: The variable holds something else.

    Example: `seconds_from_environment("SBX_TEARDOWN_GRACE", 5.0)`
    """
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise ConfigurationError(
            f"{variable} does not hold a positive number of seconds",
            hint=f"set {variable} to a number such as {default:g}, or unset it",
        )
    return seconds
