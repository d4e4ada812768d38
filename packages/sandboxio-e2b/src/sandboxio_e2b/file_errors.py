"""What it means that E2B refuses an operation on a path."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from e2b.exceptions import (
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    SandboxException,
    SandboxNotFoundException,
    TimeoutException,
)

from sandboxio.errors import CapabilityNotSupported, FileSystemError, PathNotFound, SandboxError

__all__ = ["explained", "is_a_directory", "tool_error"]

_PHRASES: Final = (
    ("no space left", "does not fit: no space left in the sandbox", "remove files from the sandbox"),
    ("permission denied", "may not be used by the sandbox's user", "use a path below the working folder"),
    ("operation not permitted", "may not be changed by the sandbox's user", "use the working folder"),
    ("not a directory", "is not a directory", "name a directory"),
    ("is a directory", "is a directory", "name a file"),
    ("already exists", "exists already", "remove it first, or use mkdir(parents=True)"),
    ("file exists", "exists already", "remove it first, or use mkdir(parents=True)"),
    ("file name too long", "has a part that is too long", "use at most 255 bytes for each part"),
    ("too many levels of symbolic links", "leads through a circle of links", "remove one of the links"),
    ("too many links", "leads through a circle of links", "remove one of the links"),
)
_MISSING: Final = "no such file or directory"
_TOOL_MISSING_CODE: Final = 127


@contextmanager
def explained(path: str) -> Generator[None]:
    """Turn what the SDK says about `path` into errors of sandboxio; all else passes.

    Raises:
        PathNotFound: It or its parent does not exist.
        FileSystemError: It is of another kind, may not be used, or there is no space. Or it is no UTF-8,
            which cannot be sent.
    """
    try:
        path.encode()
    except UnicodeEncodeError as exc:
        raise FileSystemError(
            f"{path!r} is no UTF-8, and E2B takes no other paths",
            hint="rename it with run(), where the shell can match it: mv name-* name",
        ) from exc
    try:
        yield
    except SandboxNotFoundException:
        raise
    except NotFoundException as exc:
        raise PathNotFound(f"{path!r} or its parent does not exist") from exc
    except NotEnoughSpaceException as exc:
        raise _file_error(path, "no space left") from exc
    except InvalidArgumentException as exc:
        raise _file_error(path, _without(path, exc)) from exc
    except TimeoutException:
        raise
    except SandboxException as exc:
        reason = _without(path, exc)
        if not any(phrase in reason.lower() for phrase, _, _ in _PHRASES):
            raise
        raise _file_error(path, reason) from exc


def is_a_directory(path: str) -> FileSystemError:
    """The error for a directory where a file has to be."""
    return FileSystemError(
        f"{path!r} is a directory",
        hint="name a file; files.ls() lists a directory, and remove(recursive=True) removes one",
    )


def tool_error(path: str, program: str, code: int, reason: str) -> SandboxError:
    """The error for a program of the sandbox that failed on behalf of an operation on `path`."""
    if code == _TOOL_MISSING_CODE:
        return CapabilityNotSupported(
            f"the template has no {program}, which this operation on {path!r} needs",
            hint=f"use a template that contains {program}",
        )
    return _file_error(path, _without(path, reason))


def _without(path: str, reason: object) -> str:
    """The reason alone: a path can be named like one."""
    return str(reason).replace(path, "")


def _file_error(path: str, reason: str) -> FileSystemError:
    lowered = reason.lower()
    for phrase, words, hint in _PHRASES:
        if phrase in lowered:
            return FileSystemError(f"{path!r} {words}", hint=hint)
    if _MISSING in lowered:
        return PathNotFound(f"{path!r} or its parent does not exist")
    return FileSystemError(f"the operation on {path!r} failed: {reason.strip()[:300] or 'no reason given'}")
