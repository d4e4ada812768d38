"""One secure async Python API over any sandbox for code written by AI agents.

Importing this package loads nothing else: a public name brings its module when it is first used.
"""

TYPE_CHECKING = (
    False  # type checkers know this name; importing `typing` for it would cost more than all of this
)
if TYPE_CHECKING:
    from typing import Any

    from sandboxio._version import __version__
    from sandboxio.api import PendingSandbox, backend_for, connect, create
    from sandboxio.audit import (
        AuditConfig,
        AuditEvent,
        AuditSink,
        FileSink,
        LoggingSink,
        NoopSink,
        QueueSink,
    )
    from sandboxio.diagnosis import BackendReport, Check, DoctorReport, doctor
    from sandboxio.errors import (
        AuditSinkError,
        AuditSinkWarning,
        AuthError,
        BackendNotFound,
        BackendNotInstalled,
        CapabilityNotSupported,
        ConfigurationError,
        ConnectError,
        CreateTimeout,
        CreationError,
        ExecutionError,
        ExecutionTimeout,
        ExperimentalWarning,
        FileSystemError,
        NetworkPolicyViolation,
        OrphanedSandboxWarning,
        PathNotFound,
        RateLimitError,
        ResourceLimitExceeded,
        SandboxError,
        SandboxGone,
        SandboxTimeout,
        SandboxWarning,
        UnverifiedIsolationWarning,
    )
    from sandboxio.models import (
        PIPE,
        Capability,
        ExecResult,
        FileInfo,
        IsolationTier,
        ManagedSandbox,
        Meter,
        OutputChunk,
        Pipe,
        Resources,
        RichOutput,
    )
    from sandboxio.network import EgressRule, NetworkPolicy
    from sandboxio.protocols import (
        AsyncFileSystem,
        AsyncSandbox,
        Backend,
        DiagnosableBackend,
        IsolationVerifier,
        Process,
        ReapableBackend,
    )
    from sandboxio.registry import BackendClass, BackendConfig, installed_backends, register
    from sandboxio.sync import SyncFileSystem, SyncProcess, SyncSandbox, connect_sync, create_sync

__all__ = [
    "PIPE",
    "AsyncFileSystem",
    "AsyncSandbox",
    "AuditConfig",
    "AuditEvent",
    "AuditSink",
    "AuditSinkError",
    "AuditSinkWarning",
    "AuthError",
    "Backend",
    "BackendClass",
    "BackendConfig",
    "BackendNotFound",
    "BackendNotInstalled",
    "BackendReport",
    "Capability",
    "CapabilityNotSupported",
    "Check",
    "ConfigurationError",
    "ConnectError",
    "CreateTimeout",
    "CreationError",
    "DiagnosableBackend",
    "DoctorReport",
    "EgressRule",
    "ExecResult",
    "ExecutionError",
    "ExecutionTimeout",
    "ExperimentalWarning",
    "FileInfo",
    "FileSink",
    "FileSystemError",
    "IsolationTier",
    "IsolationVerifier",
    "LoggingSink",
    "ManagedSandbox",
    "Meter",
    "NetworkPolicy",
    "NetworkPolicyViolation",
    "NoopSink",
    "OrphanedSandboxWarning",
    "OutputChunk",
    "PathNotFound",
    "PendingSandbox",
    "Pipe",
    "Process",
    "QueueSink",
    "RateLimitError",
    "ReapableBackend",
    "ResourceLimitExceeded",
    "Resources",
    "RichOutput",
    "SandboxError",
    "SandboxGone",
    "SandboxTimeout",
    "SandboxWarning",
    "SyncFileSystem",
    "SyncProcess",
    "SyncSandbox",
    "UnverifiedIsolationWarning",
    "__version__",
    "backend_for",
    "connect",
    "connect_sync",
    "create",
    "create_sync",
    "doctor",
    "installed_backends",
    "register",
]

# Where the names are that do not come from `sandboxio.errors`.
_NAMES_IN = {
    "_version": ("__version__",),
    "api": ("PendingSandbox", "backend_for", "connect", "create"),
    "audit": (
        "AuditConfig",
        "AuditEvent",
        "AuditSink",
        "FileSink",
        "LoggingSink",
        "NoopSink",
        "QueueSink",
    ),
    "diagnosis": ("BackendReport", "Check", "DoctorReport", "doctor"),
    "models": (
        "PIPE",
        "Capability",
        "ExecResult",
        "FileInfo",
        "IsolationTier",
        "ManagedSandbox",
        "Meter",
        "OutputChunk",
        "Pipe",
        "Resources",
        "RichOutput",
    ),
    "network": ("EgressRule", "NetworkPolicy"),
    "protocols": (
        "AsyncFileSystem",
        "AsyncSandbox",
        "Backend",
        "DiagnosableBackend",
        "IsolationVerifier",
        "Process",
        "ReapableBackend",
    ),
    "registry": ("BackendClass", "BackendConfig", "installed_backends", "register"),
    "sync": ("SyncFileSystem", "SyncProcess", "SyncSandbox", "connect_sync", "create_sync"),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_MODULE_OF.get(name, 'errors')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
