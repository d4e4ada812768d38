"""The error tree: every failure a caller can meet, with its code, its fix and its page.

The long descriptions behind the codes are data in `sandboxio.error_catalog`, from which the
documentation pages are generated. Nothing here imports the rest of the package.
"""

from __future__ import annotations

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

DOCS_URL: Final = "https://docs.sandboxio.dev/errors/"


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
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint

    @property
    def url(self) -> str:
        """The documentation page of this error's code."""
        return DOCS_URL + self.code

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}\nFix: {self.hint}\nDocs: {self.url}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.code}: {self.message}>"


class ConfigurationError(SandboxError):
    """What was asked for is malformed or contradicts itself. Nothing was provisioned."""

    code = "SBX_E1000"
    default_hint = "correct the argument that the message names"


class BackendNotFound(ConfigurationError):
    """No backend of this name is known."""

    code = "SBX_E1001"
    default_hint = "use the name of an installed backend"


class BackendNotInstalled(ConfigurationError):
    """The backend is known, but its distribution is not installed."""

    code = "SBX_E1002"
    default_hint = "install the backend's extra"


class CapabilityNotSupported(SandboxError):
    """The sandbox or backend does not declare what was asked of it."""

    code = "SBX_E1101"
    default_hint = "choose a backend that declares the capability"


class CreationError(SandboxError):
    """The sandbox could not be created; nothing was left behind."""

    code = "SBX_E1201"
    default_hint = "run `sandboxio doctor` to see what the backend lacks"


class ConnectError(SandboxError):
    """The backend could not be reached, or did not answer as it should."""

    code = "SBX_E1202"
    default_hint = "run `sandboxio doctor` to see whether the backend is reachable"


class SandboxTimeout(SandboxError):
    """The common base of every timeout; never raised itself."""


class CreateTimeout(CreationError, SandboxTimeout):
    """The backend did not provide a usable sandbox in time."""

    code = "SBX_E1203"
    default_hint = "try again; run `sandboxio doctor` when it happens repeatedly"


class SandboxGone(SandboxError):
    """The sandbox has ended: its lifetime is over, it was killed, or it died."""

    code = "SBX_E1204"
    default_hint = "create a new sandbox; give create(timeout=…) a longer lifetime if it expired"


class ExecutionError(SandboxError):
    """An execution ended with an exit code other than 0, and `raise_for_status()` was called.

    Attributes:
        result: The result it was called on, or `None`.
    """

    code = "SBX_E1301"
    default_hint = "read exc.result.stderr for the reason"

    def __init__(self, message: str, *, hint: str = "", result: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class ExecutionTimeout(SandboxTimeout):
    """An execution ran past its deadline; its whole process tree was ended.

    Attributes:
        partial: What it had written before, with exit code -1.
    """

    code = "SBX_E1302"
    default_hint = "raise timeout=, or make the program do less; exc.partial holds its output so far"

    def __init__(self, message: str, *, hint: str = "", partial: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


class NetworkPolicyViolation(SandboxError):
    """A connection that the sandbox's network policy forbids was attempted."""

    code = "SBX_E1401"
    default_hint = "allow the destination with network=NetworkPolicy(allow=(…,)), if it is meant"


class ResourceLimitExceeded(SandboxError):
    """The sandbox hit one of its caps, which the message names with its value.

    Attributes:
        partial: What the execution had written before, with exit code -1.
    """

    code = "SBX_E1402"
    default_hint = "raise the cap that the message names, in resources=Resources(…)"

    def __init__(self, message: str, *, hint: str = "", partial: ExecResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


class AuthError(SandboxError):
    """The provider's credential is missing or refused."""

    code = "SBX_E1501"
    default_hint = "set the environment variable that the message names"


class RateLimitError(SandboxError):
    """The provider refuses for now because of the rate or number of requests."""

    code = "SBX_E1502"
    default_hint = "wait, then try again with fewer sandboxes at once"


class AuditSinkError(SandboxError):
    """An audit sink failed, and the configuration says that this must fail the operation."""

    code = "SBX_E1601"
    default_hint = 'repair the sink, or set AuditConfig(on_sink_failure="warn")'


class FileSystemError(SandboxError):
    """A file operation in the sandbox, or the local side of a transfer, failed."""

    code = "SBX_E1700"
    default_hint = "check the path, its permissions and the free space"


class PathNotFound(FileSystemError):
    """The path does not exist."""

    code = "SBX_E1701"
    default_hint = "list the parent with files.ls() to see what exists"


class SandboxWarning(Warning):
    """The root of this library's warnings."""


class OrphanedSandboxWarning(SandboxWarning):
    """A sandbox could not be ended in time and may still run at the provider."""


class UnverifiedIsolationWarning(SandboxWarning):
    """A backend reports no isolation tier that was verified."""


class AuditSinkWarning(SandboxWarning):
    """An audit sink failed or dropped events, and the operation went on."""


class ExperimentalWarning(SandboxWarning):
    """The feature may change without a deprecation period."""
