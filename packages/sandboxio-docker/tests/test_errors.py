"""Which error of sandboxio each failure of an engine is."""

from __future__ import annotations

import errno
import ssl

import h11
import pytest

from sandboxio.errors import AuthError, ConnectError, RateLimitError, SandboxError, SandboxGone
from sandboxio_docker.errors import EngineError, EngineTimeout, EngineUnreachable, UnexpectedAnswer, translate


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (EngineError(404, "No such container: 1f"), SandboxGone),
        (EngineError(404, "No such exec instance: 1f"), SandboxGone),
        (EngineError(409, "Container 1f is not running"), SandboxGone),
        (EngineError(500, "something else"), ConnectError),
        (EngineError(403, "authorization denied by plugin"), AuthError),
        (EngineError(429, "too many requests"), RateLimitError),
        (EngineTimeout("GET /info", 60), ConnectError),
        (UnexpectedAnswer("the answer is no object"), ConnectError),
        (ssl.SSLError(1, "bad certificate"), ConnectError),
        (h11.RemoteProtocolError("illegal status line"), ConnectError),
        (ConnectionResetError(errno.ECONNRESET, "reset"), ConnectError),
    ],
)
def test_each_failure_is_an_error_of_ours(failure: Exception, expected: type[SandboxError]) -> None:
    error = translate(failure)
    assert type(error) is expected
    assert error.hint


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.EACCES, "usermod"),
        (errno.ENOENT, "systemctl start docker"),
        (errno.ECONNREFUSED, "systemctl start docker"),
        (errno.EHOSTUNREACH, "DOCKER_HOST"),
    ],
)
def test_an_engine_that_cannot_be_reached_comes_with_the_fix(number: int, fix: str) -> None:
    error = translate(EngineUnreachable("unix:///x", OSError(number, "why")))
    assert isinstance(error, ConnectError)
    assert fix in error.hint


def test_what_is_no_failure_of_an_engine_is_left_alone() -> None:
    assert translate(KeyError("x")) is None
