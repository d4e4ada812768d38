"""Which error of sandboxio each failure of the SDK is: the SDK's own mapping of statuses, and ours of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import e2b.exceptions
import httpx
import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError as RpcError
from e2b.api import handle_api_exception
from e2b.envd.api import format_envd_api_exception
from e2b.envd.rpc import handle_rpc_exception
from e2b.sandbox.commands.command_handle import CommandExitException
from e2b.sandbox_async.filesystem.filesystem import _FILESYSTEM_HTTP_ERROR_MAP, _FILESYSTEM_RPC_ERROR_MAP
from e2b_code_interpreter.models import aextract_exception

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
from sandboxio_e2b.errors import API_KEY_VARIABLE, creation_error, translate

GONE = "The sandbox was not found"
CLOSED = "The sandbox is running but port is not open"

Kind = type[SandboxError]


@dataclass(frozen=True)
class Answer:
    """What the SDK reads of an answer of the control plane."""

    status_code: int
    content: bytes


def of_control_plane(status: int, message: str) -> Exception:
    body = json.dumps({"code": status, "message": message}).encode()
    return handle_api_exception(Answer(status, body))


def of_rpc(code: Code, message: str = "why") -> Exception:
    error = handle_rpc_exception(RpcError(code, message))
    assert isinstance(error, Exception)
    return error


def of_interpreter(status: int, message: str = "why") -> Exception:
    request = httpx.Request("POST", "http://sandbox.test/execute")
    error = asyncio.run(aextract_exception(httpx.Response(status, text=message, request=request)))
    assert error is not None
    return error


def check(failure: Exception, expected: Kind) -> SandboxError:
    error = translate(failure)
    assert type(error) is expected
    assert error.hint
    return error


@pytest.mark.parametrize(
    ("status", "expected", "when_created"),
    [
        (400, ConnectError, CreationError),
        (401, AuthError, AuthError),
        (403, AuthError, AuthError),
        (404, ConnectError, CreationError),
        (409, ConnectError, CreationError),
        (413, ConnectError, CreationError),
        (429, RateLimitError, RateLimitError),
        (500, ConnectError, CreationError),
        (502, ConnectError, CreationError),
        (503, ConnectError, CreationError),
        (504, ConnectError, CreationError),
        (507, ConnectError, CreationError),
    ],
)
def test_answers_of_the_control_plane(status: int, expected: Kind, when_created: Kind) -> None:
    failure = of_control_plane(status, "why it is so")
    assert "why it is so" in check(failure, expected).message
    error = creation_error(failure)
    assert type(error) is when_created
    assert "why it is so" in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (Code.INVALID_ARGUMENT, "why", ConfigurationError),
        (Code.UNAUTHENTICATED, "why", AuthError),
        (Code.NOT_FOUND, "why", PathNotFound),
        (Code.RESOURCE_EXHAUSTED, "why", RateLimitError),
        (Code.UNAVAILABLE, GONE, SandboxGone),
        (Code.UNAVAILABLE, CLOSED, ConnectError),
        (Code.UNAVAILABLE, "why", ConnectError),
        (Code.DEADLINE_EXCEEDED, "why", ConnectError),
        (Code.CANCELED, "why", ConnectError),
        (Code.INTERNAL, "why", ConnectError),
        (Code.UNKNOWN, "why", ConnectError),
    ],
)
def test_answers_to_calls_of_envd(code: Code, message: str, expected: Kind) -> None:
    check(of_rpc(code, message), expected)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (400, "why", ConfigurationError),
        (401, "why", AuthError),
        (404, "why", PathNotFound),
        (413, "why", ConnectError),
        (429, "why", RateLimitError),
        (502, GONE, SandboxGone),
        (502, CLOSED, ConnectError),
        (503, "why", ConnectError),
        (504, "why", ConnectError),
        (507, "why", FileSystemError),
    ],
)
def test_answers_about_files(status: int, message: str, expected: Kind) -> None:
    check(format_envd_api_exception(status, message, _FILESYSTEM_HTTP_ERROR_MAP), expected)


def test_a_file_that_is_not_there_is_a_path_that_is_not_found() -> None:
    failure = handle_rpc_exception(RpcError(Code.NOT_FOUND, "why"), _FILESYSTEM_RPC_ERROR_MAP)
    assert type(failure) is e2b.exceptions.FileNotFoundException
    check(failure, PathNotFound)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ConnectError),
        (401, AuthError),
        (403, AuthError),
        (404, PathNotFound),
        (413, ConnectError),
        (429, RateLimitError),
        (500, ConnectError),
        (502, ConnectError),
        (503, ConnectError),
        (504, ConnectError),
    ],
)
def test_answers_of_the_code_interpreter(status: int, expected: Kind) -> None:
    assert "why" in check(of_interpreter(status), expected).message


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (e2b.exceptions.SandboxNotFoundException("Sandbox i1 not found"), SandboxGone),
        (e2b.exceptions.SandboxNotRunningException("i1"), SandboxGone),
        (e2b.exceptions.SandboxUnreachableException("i1"), ConnectError),
        (e2b.exceptions.TimeoutException("slow"), ConnectError),
        (e2b.exceptions.TemplateException("too old"), CreationError),
        (e2b.exceptions.GuestUnresponsiveException("frozen"), ConnectError),
        (e2b.exceptions.ServiceBusyException("full"), ConnectError),
        (CommandExitException(stderr="", stdout="", exit_code=1, error=None), ConnectError),
    ],
)
def test_each_exception_of_the_sdk(failure: Exception, expected: Kind) -> None:
    check(failure, expected)


def test_every_exception_of_the_sandboxes_is_an_error_of_ours() -> None:
    roots = (
        e2b.exceptions.SandboxException,
        e2b.exceptions.AuthenticationException,
        e2b.exceptions.ServiceBusyException,
    )
    kinds = [
        kind for kind in vars(e2b.exceptions).values() if isinstance(kind, type) and issubclass(kind, roots)
    ]
    assert len(kinds) > 12
    for kind in kinds:
        assert isinstance(translate(kind("x")), SandboxError), kind


@pytest.mark.parametrize(
    "failure",
    [
        json.JSONDecodeError("bad", "", 0),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut off"),
        httpx.StreamClosed(),
        RpcError(Code.INTERNAL, "raw"),
        ConnectionResetError("reset"),
        TimeoutError("slow"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_leaks_from_below_the_sdk_is_a_lost_connection(failure: Exception) -> None:
    check(failure, ConnectError)
    assert type(creation_error(failure)) is ConnectError


@pytest.mark.parametrize("failure", [KeyError("x"), RuntimeError("x"), ValueError("x"), AssertionError()])
def test_what_is_no_failure_of_e2b_is_left_alone(failure: Exception) -> None:
    assert translate(failure) is None
    assert creation_error(failure) is None


def test_a_refused_credential_names_the_variable_that_holds_it() -> None:
    assert API_KEY_VARIABLE == "E2B_API_KEY"
    assert API_KEY_VARIABLE in check(of_control_plane(401, "no"), AuthError).hint


def test_a_template_that_is_too_old_stays_what_it_is_when_creating() -> None:
    error = creation_error(e2b.exceptions.TemplateException("envd is old"))
    assert isinstance(error, CreationError)
    assert "build the template again" in error.hint


@pytest.mark.parametrize(
    "failure",
    [
        e2b.exceptions.SandboxNotRunningException("i1"),
        e2b.exceptions.NotFoundException("i1"),
        e2b.exceptions.TimeoutException("slow"),
        e2b.exceptions.ServiceBusyException("full"),
    ],
)
def test_a_sandbox_that_was_not_there_yet_was_not_created(failure: Exception) -> None:
    assert type(creation_error(failure)) is CreationError


def test_a_message_is_one_line_of_bounded_length_and_an_empty_one_is_named() -> None:
    assert len(check(e2b.exceptions.SandboxException("x" * 10_000), ConnectError).message) < 1000
    assert "a b" in check(e2b.exceptions.SandboxException("a\n\tb"), ConnectError).message
    assert "ReadTimeout" in check(httpx.ReadTimeout(" "), ConnectError).message
