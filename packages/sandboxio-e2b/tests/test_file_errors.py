"""What it means that E2B refuses an operation on a path."""

from __future__ import annotations

import pytest
from e2b.exceptions import (
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    TimeoutException,
)

from sandboxio.errors import CapabilityNotSupported, FileSystemError, PathNotFound, SandboxError
from sandboxio_e2b.file_errors import explained, is_a_directory, tool_error

PATH = "/home/user/x"


def explain(failure: Exception) -> SandboxError:
    with pytest.raises(SandboxError) as caught, explained(PATH):
        raise failure
    assert caught.value.__cause__ is failure
    assert PATH in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("kind", [FileNotFoundException, NotFoundException])
def test_what_is_not_found_is_a_path(kind: type[Exception]) -> None:
    assert type(explain(kind("why"))) is PathNotFound


@pytest.mark.parametrize("kind", [InvalidArgumentException, SandboxException])
@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("write /x: no space left on device", "does not fit"),
        ("open /x: permission denied", "may not be used"),
        ("rename /x /y: operation not permitted", "may not be changed"),
        ("path is not a directory: /x", "is not a directory"),
        ("mkdir /x/y: Not a directory", "is not a directory"),
        ("path '/x' is a directory", "is a directory"),
        ("directory already exists: /x", "exists already"),
        ("rename /x /y: file exists", "exists already"),
        ("open /x: file name too long", "too long"),
    ],
)
def test_a_reason_in_words_is_a_file_system_error(kind: type[Exception], reason: str, words: str) -> None:
    error = explain(kind(reason))
    assert type(error) is FileSystemError
    assert words in error.message


def test_an_argument_without_a_known_reason_is_one_too() -> None:
    error = explain(InvalidArgumentException("something new"))
    assert type(error) is FileSystemError
    assert "something new" in error.message


def test_a_missing_parent_is_a_path_that_is_not_found() -> None:
    assert type(explain(InvalidArgumentException("open /x/y: no such file or directory"))) is PathNotFound


def test_a_disk_that_is_full_says_so() -> None:
    error = explain(NotEnoughSpaceException("507"))
    assert type(error) is FileSystemError
    assert "no space left" in error.message


@pytest.mark.parametrize(
    "failure",
    [
        SandboxNotFoundException("gone"),
        SandboxNotRunningException("gone: permission denied"),
        SandboxUnreachableException("away: file exists"),
        TimeoutException("slow: is a directory"),
        SandboxException("500: something"),
        RateLimitException("429"),
        AuthenticationException("401: permission denied"),
        ConnectionResetError("reset"),
        KeyError("x"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_is_not_about_the_path_passes(failure: Exception) -> None:
    with pytest.raises(type(failure)) as caught, explained(PATH):
        raise failure
    assert caught.value is failure


def test_nothing_wrong_is_nothing() -> None:
    with explained(PATH):
        passed = True
    assert passed


def test_a_long_reason_is_cut() -> None:
    assert len(explain(InvalidArgumentException("x" * 10_000)).message) < 1000


def test_a_directory_where_a_file_has_to_be() -> None:
    error = is_a_directory(PATH)
    assert type(error) is FileSystemError
    assert PATH in error.message
    assert "files.ls" in error.hint


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (127, "tar: not found", CapabilityNotSupported),
        (2, "tar: /x: Cannot open: Permission denied", FileSystemError),
        (2, "tar: write error: No space left on device", FileSystemError),
        (1, "chmod: cannot access '/x': No such file or directory", PathNotFound),
        (1, "", FileSystemError),
        (137, "", FileSystemError),
    ],
)
def test_a_program_that_failed(code: int, reason: str, expected: type[SandboxError]) -> None:
    error = tool_error(PATH, "tar", code, reason)
    assert type(error) is expected
    assert PATH in error.message
    assert error.hint


def test_a_program_that_is_missing_is_named() -> None:
    error = tool_error(PATH, "tar", 127, "")
    assert "no tar" in error.message
    assert "tar" in error.hint
