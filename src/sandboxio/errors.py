"""The error tree: every failure a caller can meet, with its code, its fix and its page.

The long descriptions behind the codes are data in `sandboxio.error_catalog`, from which the
documentation pages are generated. Importing this module imports nothing else of the package.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from sandboxio.models import ExecResult

__all__ = [
    "AuditSinkError",
    "AuditSinkWarning",
    "AuthError",
    "BackendNotFound",
    "BackendNotInstalled",
    "CapabilityNotSupported",
    "ConfigurationError",
    "ConnectError",
    "CreateTimeout",
    "CreationError",
    "ExecutionError",
    "ExecutionTimeout",
    "ExperimentalWarning",
    "FileSystemError",
    "NetworkPolicyViolation",
    "OrphanedSandboxWarning",
    "PathNotFound",
    "RateLimitError",
    "ResourceLimitExceeded",
    "SandboxError",
    "SandboxGone",
    "SandboxTimeout",
    "SandboxWarning",
    "UnverifiedIsolationWarning",
]

_URL_PASSWORD: Final = re.compile(r"(://)[^/?#\s:]*:[^/?#\s]*@")

DOCS_URL: Final = "https://docs.sandboxio.dev/errors/"


def _fit_to_show(text: str) -> str:
    """Text that may come from anywhere, without passwords in URLs and what steers a terminal, in one line."""
    if "@" in text:
        text = _URL_PASSWORD.sub(r"\1", text)
    if text.isprintable():
        return text
    spaced = " ".join(text.split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in spaced)


class SandboxError(Exception):
    """The root of every error of this library; catch it to catch them all.

    It is abstract: what is raised is always one of the classes below, each with a stable code.

    Attributes:
        message: What happened, without any secret.
        hint: The exact fix, a command where one exists.
        code: The stable code, such as `SBX_E1302`.
        url: The page that explains the code.

    Example: `except SandboxError as exc: print(exc.code, exc.hint)`
    """

    code: ClassVar[str] = ""
    default_hint: ClassVar[str] = "read the page below"

    def __init__(self, message: str, *, hint: str = "") -> None:
        if not self.code:
            raise TypeError(f"{type(self).__name__} is abstract: raise one of its subclasses")
        message = _fit_to_show(message)
        super().__init__(message)
        self.message = message
        self.hint = _fit_to_show(hint or self.default_hint)

    @property
    def url(self) -> str:
        """The documentation page of this error's code."""
        return DOCS_URL + self.code

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}\nFix: {self.hint}\nDocs: {self.url}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.code}: {self.message}>"


class ConfigurationError(SandboxError):
    """What was asked for is malformed or contradicts itself. Nothing was provisioned.

    Example: `create(timeout=0)` raises it.
    """

    code = "SBX_E1000"
    default_hint = "correct the argument that the message names"


class BackendNotFound(ConfigurationError):
    """No backend of this name is known. The message lists the installed ones.

    Example: `create("acme://")` raises it where nobody provides `acme`.
    """

    code = "SBX_E1001"
    default_hint = "use the name of an installed backend"


class BackendNotInstalled(ConfigurationError):
    """The backend is known, but its distribution is missing or cannot be imported.

    Example: `except BackendNotInstalled as exc: print(exc.hint)` shows the install command.
    """

    code = "SBX_E1002"
    default_hint = "install the backend's extra"


class CapabilityNotSupported(SandboxError):
    """The sandbox or backend does not declare what was asked of it. Nothing was done instead.

    Example: `if Capability.STATEFUL_CODE in sb.capabilities` avoids it for `context_id=`.
    """

    code = "SBX_E1101"
    default_hint = "choose a backend that declares the capability"


class CreationError(SandboxError):
    """The sandbox could not be created; nothing was left behind.

    Example: `except CreationError as exc: print(exc.hint, exc.__cause__)`
    """

    code = "SBX_E1201"
    default_hint = "run `sandboxio doctor` to see what the backend lacks"


class ConnectError(SandboxError):
    """The backend could not be reached, or did not answer as it should.

    Example: `except ConnectError: ...` around `create()`, where the engine may be down.
    """

    code = "SBX_E1202"
    default_hint = "run `sandboxio doctor` to see whether the backend is reachable"


class SandboxTimeout(SandboxError):
    """The common base of every timeout; never raised itself.

    Example: `except SandboxTimeout: ...` catches `CreateTimeout` and `ExecutionTimeout`.
    """


class CreateTimeout(CreationError, SandboxTimeout):
    """The backend did not provide a usable sandbox in time. Nothing was left behind.

    Example: `except CreateTimeout: ...` around `create()`.
    """

    code = "SBX_E1203"
    default_hint = "try again; run `sandboxio doctor` when it happens repeatedly"


class SandboxGone(SandboxError):
    """The sandbox has ended: its lifetime is over, it was killed, or it died.

    Example: `except SandboxGone: sb = await create()`
    """

    code = "SBX_E1204"
    default_hint = "create a new sandbox; give create(timeout=…) a longer lifetime if it expired"


class ExecutionError(SandboxError):
    """An execution ended with an exit code other than 0, and `raise_for_status()` was called.

    It is also raised when input is written to a process that no longer reads.

    Attributes:
        result: The result it was called on. Where there is none, one that is empty and has the
            exit code -1.

    Example: `except ExecutionError as exc: print(exc.result.stderr)`
    """

    code = "SBX_E1301"
    default_hint = "read exc.result.stderr for the reason"

    def __init__(self, message: str, *, hint: str = "", result: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = _result_or_empty(result)


class ExecutionTimeout(SandboxTimeout):
    """An execution ran past its deadline; its whole process tree was ended.

    Attributes:
        partial: What it had written before, with exit code -1; empty if nothing had started.

    Example: `except ExecutionTimeout as exc: print(exc.partial.stdout)`
    """

    code = "SBX_E1302"
    default_hint = "raise timeout=, or make the program do less; exc.partial holds its output so far"

    def __init__(self, message: str, *, hint: str = "", partial: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = _result_or_empty(partial)


class NetworkPolicyViolation(SandboxError):
    """A connection that the sandbox's network policy forbids was attempted.

    It is raised where the provider reports the attempt; elsewhere the program in the sandbox sees
    a refused connection.

    Example: `create(network=NetworkPolicy(allow=("example.org",)))` allows one destination.
    """

    code = "SBX_E1401"
    default_hint = "allow the destination with network=NetworkPolicy(allow=(…,)), if it is meant"


class ResourceLimitExceeded(SandboxError):
    """The sandbox hit one of its caps, which the message names with its value.

    Attributes:
        partial: What the execution had written before, with exit code -1; empty if nothing had
            started.

    Example: `except ResourceLimitExceeded as exc: print(exc.message, exc.partial.stdout)`
    """

    code = "SBX_E1402"
    default_hint = "raise the cap that the message names, in resources=Resources(…)"

    def __init__(self, message: str, *, hint: str = "", partial: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = _result_or_empty(partial)


class AuthError(SandboxError):
    """The provider's credential is missing or refused. The message names its variable.

    Example: `except AuthError as exc: print(exc.hint)`
    """

    code = "SBX_E1501"
    default_hint = "set the environment variable that the message names"


class RateLimitError(SandboxError):
    """The provider refuses for now because of the rate or number of requests. Nothing is retried.

    Example: `except RateLimitError: await anyio.sleep(30)`, then try again.
    """

    code = "SBX_E1502"
    default_hint = "wait, then try again with fewer sandboxes at once"


class AuditSinkError(SandboxError):
    """An audit sink failed, and the configuration says that this must fail the operation.

    The operation itself had succeeded. The message tells of every sink that failed.

    Example: `AuditConfig(sinks=(sink,), on_sink_failure="fail")` asks for it.
    """

    code = "SBX_E1601"
    default_hint = 'repair the sink, or set AuditConfig(on_sink_failure="warn")'


class FileSystemError(SandboxError):
    """A file operation in the sandbox, or the local side of a transfer, failed.

    Example: `except FileSystemError as exc: print(exc.message)` around `sb.files.write(...)`.
    """

    code = "SBX_E1700"
    default_hint = "check the path, its permissions and the free space"


class PathNotFound(FileSystemError):
    """The path does not exist.

    Example: `except PathNotFound: ...` around `sb.files.read("out.csv")`.
    """

    code = "SBX_E1701"
    default_hint = "list the parent with files.ls() to see what exists"


class SandboxWarning(Warning):
    """The root of this library's warnings.

    Example: `warnings.simplefilter("error", SandboxWarning)`
    """


class OrphanedSandboxWarning(SandboxWarning):
    """A sandbox could not be ended in time and may still run at the provider.

    Example: `sandboxio reap` lists it, `sandboxio reap --kill` ends it.
    """


class UnverifiedIsolationWarning(SandboxWarning):
    """A backend reports no isolation tier that was verified. Told once per backend and process.

    Example: `create(require_isolation=IsolationTier.CONTAINER)` refuses such a backend.
    """


class AuditSinkWarning(SandboxWarning):
    """An audit sink failed or dropped events, and the operation went on.

    Example: `warnings.simplefilter("always", AuditSinkWarning)` shows each one.
    """


class ExperimentalWarning(SandboxWarning):
    """The feature may change without a deprecation period.

    Example: `warnings.simplefilter("ignore", ExperimentalWarning)` accepts that.
    """


def _result_or_empty(result: ExecResult | None) -> ExecResult:
    if result is not None:
        return result
    from sandboxio.models import ExecResult  # the two know each other, and this one is loaded first

    return ExecResult(-1, "", "")
