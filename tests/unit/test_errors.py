"""The error tree."""

from __future__ import annotations

import builtins
import pickle
import re

import pytest

from sandboxio import errors
from sandboxio.errors import (
    BackendNotInstalled,
    ConfigurationError,
    CreateTimeout,
    CreationError,
    ExecutionError,
    ExecutionTimeout,
    SandboxError,
    SandboxTimeout,
    SandboxWarning,
)
from sandboxio.models import ExecResult

CLASSES = [getattr(errors, name) for name in errors.__all__]
ERRORS = [cls for cls in CLASSES if issubclass(cls, SandboxError)]
CONCRETE = [cls for cls in ERRORS if cls.code]


def test_a_message_has_three_lines() -> None:
    error = BackendNotInstalled("the backend acme is not installed", hint="uv sync --inexact --extra acme")
    assert str(error) == (
        "[SBX_E1002] the backend acme is not installed\n"
        "Fix: uv sync --inexact --extra acme\n"
        "Docs: https://docs.sandboxio.dev/errors/SBX_E1002"
    )


@pytest.mark.parametrize("cls", CONCRETE)
def test_every_error_has_a_code_a_fix_and_a_page(cls: type[SandboxError]) -> None:
    error = cls("it failed")
    assert re.fullmatch(r"SBX_E1[0-7]\d\d", error.code)
    assert error.hint
    assert error.url.endswith(f"/{error.code}")
    assert error.message == "it failed"
    assert repr(error) == f"<{cls.__name__} {error.code}: it failed>"


@pytest.mark.parametrize("cls", [SandboxError, SandboxTimeout])
def test_a_base_is_never_raised_itself(cls: type[SandboxError]) -> None:
    with pytest.raises(TypeError, match="abstract"):
        cls("it failed")


@pytest.mark.parametrize("cls", CLASSES)
def test_no_name_shadows_a_builtin(cls: type) -> None:
    assert not hasattr(builtins, cls.__name__)


@pytest.mark.parametrize("cls", CLASSES)
def test_none_inherits_from_a_builtin_error(cls: type) -> None:
    builtin = {base for base in cls.__mro__ if base.__module__ == "builtins"}
    assert builtin <= {object, BaseException, Exception, Warning}


def test_a_create_timeout_is_a_creation_error_and_a_timeout() -> None:
    assert issubclass(CreateTimeout, CreationError)
    assert issubclass(CreateTimeout, SandboxTimeout)
    assert issubclass(ExecutionTimeout, SandboxTimeout)
    assert issubclass(BackendNotInstalled, ConfigurationError)


def test_errors_carry_what_is_known_about_the_execution() -> None:
    result = ExecResult(-1, "before", "")
    assert ExecutionError("it failed", result=result).result is result
    assert ExecutionTimeout("it hung", partial=result).partial is result
    assert errors.ResourceLimitExceeded("too much", partial=result).partial is result


def test_the_cause_is_kept() -> None:
    cause = OSError("refused")
    with pytest.raises(errors.ConnectError) as caught:
        raise errors.ConnectError("no answer") from cause
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("cls", CONCRETE)
def test_an_error_survives_another_process(cls: type[SandboxError]) -> None:
    error = pickle.loads(pickle.dumps(cls("it failed", hint="mend it")))
    assert (type(error), error.message, error.hint) == (cls, "it failed", "mend it")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_exception_has_one_of_the_two_roots(cls: type) -> None:
    assert issubclass(cls, SandboxError) != issubclass(cls, SandboxWarning)


@pytest.mark.parametrize(
    ("cls", "attribute"),
    [
        (ExecutionError, "result"),
        (ExecutionTimeout, "partial"),
        (errors.ResourceLimitExceeded, "partial"),
    ],
)
def test_a_result_is_always_there(cls: type[SandboxError], attribute: str) -> None:
    assert getattr(cls("it failed"), attribute) == ExecResult(-1, "", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no route to tcp://user:s3cr3t@10.0.0.1:2376", "no route to tcp://10.0.0.1:2376"),
        ("https://:s3cr3t@example.org/v2 refused", "https://example.org/v2 refused"),
        (
            "http://a:p@ss:w@example.org and http://b:q@example.org",
            "http://example.org and http://example.org",
        ),
        ("ssh://user@example.org", "ssh://user@example.org"),
        ("https://example.org/a:b@c", "https://example.org/a:b@c"),
        ("mail me@example.org", "mail me@example.org"),
    ],
)
def test_a_password_in_a_url_is_in_no_error(text: str, shown: str) -> None:
    error = ConfigurationError(text, hint=f"see {text}")
    assert (error.message, error.hint) == (shown, f"see {shown}")
