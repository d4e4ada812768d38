"""What goes wrong between here and the engine, and which error of sandboxio each case is."""

from __future__ import annotations

import errno
import ssl
from typing import Final

import h11

from sandboxio.errors import (
    AuthError,
    ConnectError,
    RateLimitError,
    SandboxError,
    SandboxGone,
)

__all__ = ["EngineError", "EngineTimeout", "EngineUnreachable", "UnexpectedAnswer", "translate"]

_MESSAGE_LIMIT: Final = 2000


class EngineError(Exception):
    """The engine answered a request with an error.

    Attributes:
        status: The HTTP status.
        message: The engine's own words, shortened.
    """

    def __init__(self, status: int, message: str) -> None:
        message = message.strip()[:_MESSAGE_LIMIT] or "no reason given"
        super().__init__(f"{message} (HTTP {status})")
        self.status = status
        self.message = message


class UnexpectedAnswer(EngineError):
    """What came is not what a Docker engine answers."""

    def __init__(self, message: str) -> None:
        super().__init__(502, message)


class EngineUnreachable(Exception):
    """No connection to the engine could be made.

    Attributes:
        address: Where it was looked for.
        cause: The operating system's error.
    """

    def __init__(self, address: str, cause: OSError) -> None:
        super().__init__(f"{address}: {cause.strerror or cause}")
        self.address = address
        self.cause = cause


class EngineTimeout(Exception):
    """The engine accepted a connection and then did not answer in time."""

    def __init__(self, doing: str, seconds: float) -> None:
        super().__init__(f"no answer to {doing} within {seconds:g} s")


_GONE_PHRASES: Final = ("no such container", "is not running", "no such exec", "is paused")

_UNREACHABLE_FIXES: Final = (
    (
        (errno.EACCES, errno.EPERM),
        "let this user reach the socket: `sudo usermod -aG docker $USER`, then log in again",
    ),
    (
        (errno.ENOENT, errno.ECONNREFUSED),
        (
            "start the engine (`sudo systemctl start docker`, or open Docker Desktop), or point DOCKER_HOST "
            "or DOCKER_CONTEXT at one that runs; scripts/docker-engine.sh starts one without a registry"
        ),
    ),
    (
        (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH),
        "check the host and the port in DOCKER_HOST or in the docker context",
    ),
)


def translate(exc: Exception) -> SandboxError | None:
    """The error of sandboxio that an exception of this adapter means, or `None` if it is no such thing.

    Example: `translate(EngineError(404, "No such container: 1f"))` is a `SandboxGone`.
    """
    if isinstance(exc, UnexpectedAnswer):
        return ConnectError(
            f"what answers is no Docker engine that can be understood: {exc.message}",
            hint="check DOCKER_HOST and the docker context: `docker version` must show a server there",
        )
    if isinstance(exc, EngineError):
        return _engine_answer(exc)
    if isinstance(exc, EngineUnreachable):
        return ConnectError(f"the Docker engine cannot be reached at {exc}", hint=_unreachable_fix(exc.cause))
    if isinstance(exc, EngineTimeout):
        return ConnectError(
            f"the Docker engine hangs: {exc}", hint="restart the engine; `docker info` must answer at once"
        )
    if isinstance(exc, ssl.SSLError):
        return ConnectError(
            f"TLS with the Docker engine failed: {getattr(exc, 'reason', None) or exc}",
            hint="check ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH, or those of the docker context",
        )
    if isinstance(exc, h11.ProtocolError):
        return ConnectError(
            f"what answers is no Docker engine: {exc}",
            hint="check DOCKER_HOST: a TLS port needs DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH",
        )
    if isinstance(exc, OSError):
        return ConnectError(
            f"the connection to the Docker engine broke: {exc.strerror or exc}",
            hint="see whether the engine still runs: `docker info`",
        )
    return None


def _engine_answer(exc: EngineError) -> SandboxError:
    text = exc.message.lower()
    if exc.status in (404, 409, 500) and any(phrase in text for phrase in _GONE_PHRASES):
        return SandboxGone(f"the container has ended: {exc.message}")
    if exc.status in (401, 403):
        return AuthError(
            f"the Docker engine refuses this client: {exc.message}",
            hint="check DOCKER_CERT_PATH or the docker context",
        )
    if exc.status in (429, 503):
        return RateLimitError(f"the Docker engine refuses for now: {exc.message}")
    return ConnectError(f"the Docker engine refused: {exc.message}")


def _unreachable_fix(cause: OSError) -> str:
    for numbers, fix in _UNREACHABLE_FIXES:
        if cause.errno in numbers:
            return fix
    return "check DOCKER_HOST and the docker context (`docker context ls`), then run `sandboxio doctor`"
