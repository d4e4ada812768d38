"""How the SDK is called on behalf of an account: the key, the cluster, and no silent retries."""

from __future__ import annotations

import os
from typing import Any, Final

from sandboxio.errors import AuthError, ConfigurationError
from sandboxio_e2b.config import E2BConfig
from sandboxio_e2b.errors import API_KEY_VARIABLE

__all__ = ["api_options"]

_DEBUG_VARIABLE: Final = "E2B_DEBUG"


def api_options(config: E2BConfig, *, request_timeout: float) -> dict[str, Any]:
    """The keyword arguments that every call to E2B's control plane takes.

    Args:
        config: The configuration.
        request_timeout: Seconds that one request may take.

    Raises:
        AuthError: There is no key.
        ConfigurationError: `E2B_DEBUG` is on, with which the SDK makes no sandbox at all.

    Example: `await AsyncSandbox.kill(sandbox_id, **api_options(config, request_timeout=10))`
    """
    if os.environ.get(_DEBUG_VARIABLE, "false").strip().lower() == "true":
        raise ConfigurationError(
            f"{_DEBUG_VARIABLE} is set, with which the SDK talks to this machine instead of to a microVM",
            hint=f"unset {_DEBUG_VARIABLE}",
        )
    if not os.environ.get(API_KEY_VARIABLE, "").strip():
        raise AuthError(
            f"E2B asks for a key, and {API_KEY_VARIABLE} is not set",
            hint=f"set the environment variable {API_KEY_VARIABLE} to a key of your E2B account",
        )
    options: dict[str, Any] = {"request_timeout": request_timeout, "retries": 0}
    if config.domain is not None:
        options["domain"] = config.domain
    return options
