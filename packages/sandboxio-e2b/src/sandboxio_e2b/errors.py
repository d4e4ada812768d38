"""What goes wrong between here and E2B, and which error of sandboxio each case is."""

from __future__ import annotations

import json
import re
from typing import Final

import httpx
from connectrpc.errors import ConnectError as RpcError
from e2b.exceptions import (
    AuthenticationException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    ServiceBusyException,
    TemplateException,
    TimeoutException,
)

from sandboxio.errors import (
    AuthError,
    ConfigurationError,
    ConnectError,
    CreationError,
    FileSystemError,
    PathNotFound,
    RateLimitError,
    SandboxError,
    SandboxGone,
)

__all__ = ["API_KEY_VARIABLE", "creation_error", "translate"]

API_KEY_VARIABLE: Final = "E2B_API_KEY"

_MESSAGE_LIMIT: Final = 500
_STATUS: Final = re.compile(r"(\d{3})[: ]")
_STATUS_CLASSES: Final[dict[int, type[Exception]]] = {
    401: AuthenticationException,
    403: AuthenticationException,
    429: RateLimitException,
}
"""What the SDK does not tell apart when the code interpreter refuses."""

_WAIT_HINT: Final = "wait a moment and try again"

# The order matters: a subclass stands before its base.
_MEANINGS: Final[tuple[tuple[type[Exception], type[SandboxError], str, str], ...]] = (
    (
        AuthenticationException,
        AuthError,
        "E2B refuses the credential",
        f"set the environment variable {API_KEY_VARIABLE} to a valid key",
    ),
    (RateLimitException, RateLimitError, "E2B refuses for now", _WAIT_HINT),
    (ServiceBusyException, ConnectError, "E2B is busy", _WAIT_HINT),
    (SandboxNotFoundException, SandboxGone, "the E2B sandbox is not there", ""),
    (SandboxNotRunningException, SandboxGone, "the E2B sandbox has ended", ""),
    (NotEnoughSpaceException, FileSystemError, "no space left in the sandbox", "remove files from it"),
    (NotFoundException, PathNotFound, "not found in the sandbox", ""),
    (
        TemplateException,
        CreationError,
        "the E2B template cannot be used",
        "build the template again with a current E2B CLI",
    ),
    (InvalidArgumentException, ConfigurationError, "E2B refuses an argument", "correct the argument"),
    (SandboxUnreachableException, ConnectError, "the E2B sandbox cannot be reached", _WAIT_HINT),
    (TimeoutException, ConnectError, "E2B did not answer in time", _WAIT_HINT),
    (SandboxException, ConnectError, "E2B refused", ""),
    (json.JSONDecodeError, ConnectError, "what answers does not speak E2B's protocol", ""),
    (httpx.HTTPError, ConnectError, "the connection to E2B failed", "check the network, then try again"),
    (httpx.StreamError, ConnectError, "the connection to E2B failed", "check the network, then try again"),
    (RpcError, ConnectError, "the connection to E2B failed", "check the network, then try again"),
    (OSError, ConnectError, "the connection to E2B failed", "check the network, then try again"),
)


def translate(exc: Exception) -> SandboxError | None:
    """The error of sandboxio that an exception of the SDK means, or `None` if it is no such thing.

    Example: `translate(RateLimitException("429"))` is a `RateLimitError`.
    """
    told = _STATUS.match(str(exc)) if type(exc) is SandboxException else None
    if told is not None and int(told[1]) in _STATUS_CLASSES:
        exc = _STATUS_CLASSES[int(told[1])](str(exc))
    for kind, error, words, hint in _MEANINGS:
        if isinstance(exc, kind):
            return error(f"{words}: {_message(exc)}", hint=hint)
    return None


def creation_error(exc: Exception) -> SandboxError | None:
    """The same for a failed creation, where a refusal without a class of its own is a `CreationError`.

    Example: `creation_error(SandboxException("400: no such template"))` is a `CreationError`.
    """
    error = translate(exc)
    refused = isinstance(exc, (SandboxException, ServiceBusyException))
    if refused and isinstance(error, (ConnectError, SandboxGone, PathNotFound)):
        return CreationError(
            f"E2B did not create the sandbox: {_message(exc)}",
            hint="check the template's name and the account's limits, then try again",
        )
    return error


def _message(exc: Exception) -> str:
    """In one line, whatever the provider has put into it."""
    return " ".join(str(exc).split())[:_MESSAGE_LIMIT] or type(exc).__name__
