"""What a model can do about an error.

Hints of the library are written for programs that call it, or for who runs the backend. A model can call the
tools and tell its user, and nothing else.
"""

from __future__ import annotations

from typing import Final

from sandboxio.backends import EXAMPLE_TARGET
from sandboxio.errors import (
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    CreateTimeout,
    CreationError,
    ExecutionTimeout,
    FileSystemError,
    NetworkPolicyViolation,
    PathNotFound,
    RateLimitError,
    ResourceLimitExceeded,
    SandboxError,
    SandboxGone,
)
from sandboxio.mcp.refusals import Refusal

__all__ = ["fix_for"]

# The first row counts whose kind the error is of and whose words its message has, in any case.
_FIXES: Final[tuple[tuple[type[SandboxError], str, str], ...]] = (
    (ExecutionTimeout, "", "give a larger timeout_seconds, or make the program do less"),
    (SandboxGone, "", "call the tool again: it gets a new, empty sandbox; files of the old one are gone"),
    (ResourceLimitExceeded, "", "use less of what the message names; the caps of this server are fixed"),
    (NetworkPolicyViolation, "", "do without this connection; the network policy of this server is fixed"),
    (
        ConfigurationError,
        "linux passes",
        "write what is long to a file with write_file, give it as stdin, or use run_python for code",
    ),
    (CapabilityNotSupported, "stateful_code", "leave context out: here only files last between calls"),
    (CapabilityNotSupported, "keeps no context", "leave context out: here only files last between calls"),
    (CapabilityNotSupported, "no shell", "give command as a list of a program and its arguments"),
    (
        CapabilityNotSupported,
        "",
        "do without it, or look with run_command for another way: what the sandbox has is fixed",
    ),
    (FileSystemError, "working folder", "give cwd a folder that exists and may be entered, such as ."),
    (PathNotFound, "", "look at what exists with list_files"),
    (FileSystemError, "is a directory", "give the path of a file; list_files shows what a directory holds"),
    (FileSystemError, "neither a file nor", "it is a device, a pipe or a socket: use it with run_command"),
    (
        FileSystemError,
        "not a directory",
        "only a directory can be listed or hold files: see with list_files which part of the path is a file",
    ),
    (
        FileSystemError,
        "exists",
        "a part of the path is a file: choose another path, or remove it with run_command",
    ),
    (
        FileSystemError,
        "larger than",
        "find, cut or summarize the part that you need with run_command or run_python",
    ),
    (FileSystemError, "no space", "remove files that are not needed any more with run_command"),
    (FileSystemError, "read-only", "use a path below the home folder or /tmp"),
    (FileSystemError, "may not be", "use a path below the home folder or /tmp"),
    (FileSystemError, "too long", "use at most 255 bytes for each part of a path"),
    (FileSystemError, "link", "see with run_command where the link leads, and give another path"),
    (FileSystemError, "", "look at the path with list_files or run_command, and give one that fits"),
)

_WORTH_ANOTHER_TRY: Final = (ConnectError, CreateTimeout, RateLimitError)


def fix_for(error: SandboxError, *, starting: bool = False) -> str:
    """The fix, in words of the tools where one of them helps, and otherwise what the user must be told.

    Args:
        error: What was raised.
        starting: There was no sandbox yet, so nothing that the model gave is to blame.

    Example: `fix_for(PathNotFound("'a' does not exist"))`
    """
    if isinstance(error, Refusal):
        return error.hint
    if not starting or isinstance(error, SandboxGone):
        message = error.message.lower()
        for kind, words, fix in _FIXES:
            if isinstance(error, kind) and words in message:
                return fix
        if isinstance(error, ConfigurationError):
            return error.hint  # of an argument, which the model gave as a program would
    again = "call the tool again; if that fails too, " if isinstance(error, _WORTH_ANOTHER_TRY) else ""
    fix = f"{again}tell the user, who can mend it outside: {error.hint}"
    if isinstance(error, CreationError):
        fix += f" (this server takes its image from its option --backend, such as --backend {EXAMPLE_TARGET})"
    return fix
