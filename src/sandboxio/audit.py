"""Audit events and the sinks that they go to.

The adapter kit makes one event of every operation, already redacted, and hands it to `deliver`.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from sandboxio.environment import seconds_from_environment
from sandboxio.errors import AuditSinkError, AuditSinkWarning, ConfigurationError
from sandboxio.logs import warn
from sandboxio.models import shown

if TYPE_CHECKING:
    from logging import Logger

    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

__all__ = [
    "AuditConfig",
    "AuditEvent",
    "AuditSink",
    "FileSink",
    "LoggingSink",
    "NoopSink",
    "QueueSink",
    "deliver",
]

OnSinkFailure = Literal["warn", "fail"]

_DEFAULT_TIMEOUT: Final = 5.0
_TURN_SECONDS: Final = 0.01  # between two looks at whether another thread still writes


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One operation, as it ended. Every text in it is redacted.

    Attributes:
        ts: When it ended, in UTC.
        event: What it was: `create`, `run`, `files.read`, …
        sandbox_id: The provider's id; empty when no sandbox came to be.
        backend: The backend's name.
        isolation: The value of the sandbox's `IsolationTier`, such as `container`.
        loosened: The names of the hardening switches that were loosened for this sandbox.
        tenant_id: The metadata value of that name.
        session_id: The metadata value of that name.
        code_sha256: The hash of the code as it was sent, in hexadecimal.
        argv: The command; empty for other operations.
        exit_code: How an execution ended; `None` for other operations and for failures.
        duration_ms: Wall time of the operation in milliseconds.
        bytes_in: Bytes that went into the sandbox.
        bytes_out: Bytes that came out of it.
        network_denials: Refused connections; `None` where the provider does not tell.
        code: The code itself, only with `AuditConfig(capture_code=True)`.
        error_code: The code of the error that was raised, such as `SBX_E1302`; `cancelled` for a
            cancellation, `error` for an exception that is not one of the library's.

    Example: `[event.event for event in sink.drain() if event.error_code]`
    """

    ts: datetime
    event: str
    backend: str
    isolation: str
    duration_ms: int
    sandbox_id: str = ""
    loosened: tuple[str, ...] = ()
    tenant_id: str | None = None
    session_id: str | None = None
    code_sha256: str | None = None
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    network_denials: int | None = None
    code: str | None = None
    error_code: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The event as plain JSON values; `ts` is in ISO 8601 form with microseconds.

        Example: `json.dumps(event.as_dict())`
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["ts"] = self.ts.astimezone(UTC).isoformat(timespec="microseconds")
        values["argv"] = list(self.argv)
        values["loosened"] = list(self.loosened)
        return values


class AuditSink(Protocol):
    """Where events go. It is awaited inline, so it should be quick and must be cancellable.

    Example:
        class Shipper:
            async def emit(self, event: AuditEvent) -> None:
                await client.post("/audit", json=event.as_dict())
    """

    async def emit(self, event: AuditEvent) -> None:
        """Take one event. Any exception counts as a failure of the sink."""
        ...


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Where a backend's events go.

    Attributes:
        sinks: They get every event, in this order. Any iterable is taken, and kept as a tuple.
        on_sink_failure: `"warn"`, or `"fail"` the operation whose event was not taken.
        capture_code: Put the code itself into events, not its hash alone; code and commands into spans.

    Raises:
        ConfigurationError: A value is none of these.

    Example: `DockerConfig(audit=AuditConfig(sinks=(FileSink("audit.jsonl"),)))`
    """

    sinks: Sequence[AuditSink] = ()
    on_sink_failure: OnSinkFailure = "warn"
    capture_code: bool = False

    def __post_init__(self) -> None:
        if self.on_sink_failure not in get_args(OnSinkFailure):
            raise ConfigurationError(
                f"AuditConfig.on_sink_failure is {shown(self.on_sink_failure)}",
                hint='use on_sink_failure="warn" or "fail"',
            )
        if not isinstance(self.sinks, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers are not all typed
            raise ConfigurationError(
                f"AuditConfig.sinks is {type(self.sinks).__name__}, not a tuple",
                hint="give a tuple, also for one sink: sinks=(sink,)",
            )
        object.__setattr__(self, "sinks", tuple(self.sinks))
        for sink in self.sinks:
            if isinstance(sink, type) or not callable(getattr(sink, "emit", None)):
                raise ConfigurationError(
                    f"AuditConfig.sinks holds {shown(sink)}, which is no sink",
                    hint="give objects with an async method emit(event), such as LoggingSink()",
                )


async def deliver(config: AuditConfig, event: AuditEvent) -> None:
    """Give an event to every sink, each bounded by `SBX_AUDIT_TIMEOUT` (5 s).

    A sink that fails or is too slow does not keep the event from the others. The variable is
    checked when a sandbox is created; here, where an error could hide the caller's own, a value
    that means nothing is 5 s.

    Raises:
        AuditSinkError: Sinks failed, and the configuration says that this counts.
    """
    if not config.sinks:
        return
    import anyio

    seconds = _sink_seconds()
    messages: list[str] = []
    causes: list[Exception] = []
    for sink in config.sinks:
        try:
            with anyio.fail_after(seconds):
                await sink.emit(event)
        except Exception as exc:  # told below, once the other sinks have had their turn
            messages.append(_failure(sink, exc, seconds))
            causes.append(exc)
    if not causes:
        return
    message = "; ".join(messages)
    if config.on_sink_failure == "fail":
        cause = causes[0] if len(causes) == 1 else ExceptionGroup("several audit sinks failed", causes)
        raise AuditSinkError(message) from cause
    warn(message, AuditSinkWarning)


def _sink_seconds() -> float:
    try:
        return seconds_from_environment("SBX_AUDIT_TIMEOUT", _DEFAULT_TIMEOUT)
    except ConfigurationError:
        return _DEFAULT_TIMEOUT


def _failure(sink: AuditSink, exc: Exception, seconds: float) -> str:
    name = type(sink).__name__
    if isinstance(exc, TimeoutError) and not str(exc):
        return f"the audit sink {name} did not take an event within {seconds:g} s"
    return f"the audit sink {name} failed: {type(exc).__name__}: {str(exc)[:200]}"


class NoopSink:
    """Drops every event.

    Example: `AuditConfig(sinks=(NoopSink(),))`
    """

    __slots__ = ()

    async def emit(self, event: AuditEvent) -> None:
        """Do nothing."""


class LoggingSink:
    """Logs every event as one line of JSON; the record carries the dictionary as `audit_event`.

    Args:
        logger: Where to log; the default is the logger `sandboxio.audit`.
        level: A level of `logging`; the default is INFO.

    Example: `AuditConfig(sinks=(LoggingSink(),))`
    """

    __slots__ = ("_level", "_logger")

    def __init__(self, logger: Logger | None = None, *, level: int = 20) -> None:
        self._logger = logger
        self._level = level

    async def emit(self, event: AuditEvent) -> None:
        """Log the event."""
        if self._logger is None:
            from sandboxio.logs import get_logger

            self._logger = get_logger("sandboxio.audit")
        values = event.as_dict()
        self._logger.log(self._level, "%s", json.dumps(values), extra={"audit_event": values})


class FileSink:
    """Appends every event to a file as one line of JSON.

    The file is opened anew for each event, so that rotation needs no signal, and each line is one
    append, so that processes can share it. A new file is private to its owner (mode 0600). The
    work is done in a thread, one at a time: a disk that hangs holds one thread, however many events
    are given up meanwhile, and delays nobody beyond the timeout.

    Args:
        path: The file. Its folder must exist.

    Example: `AuditConfig(sinks=(FileSink("/var/log/sandboxio/audit.jsonl"),))`
    """

    __slots__ = ("_limiter", "_path", "_torn", "_writing")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._limiter: RunVar[CapacityLimiter] | None = None
        self._torn = False
        self._writing = Lock()

    def __repr__(self) -> str:
        return f"<FileSink {self._path!r}>"

    async def emit(self, event: AuditEvent) -> None:
        """Append the event.

        Raises:
            OSError: The file cannot be opened or the line not be written in full.
        """
        from anyio import sleep, to_thread

        line = json.dumps(event.as_dict()).encode() + b"\n"
        limiter = self._limiter_of_this_loop()  # lets the events of one loop in one after the other
        while True:
            if not self._writing.locked() and await to_thread.run_sync(
                self._append_alone, line, abandon_on_cancel=True, limiter=limiter
            ):
                return
            await sleep(_TURN_SECONDS)

    def _limiter_of_this_loop(self) -> CapacityLimiter:
        from anyio import CapacityLimiter
        from anyio.lowlevel import RunVar

        if self._limiter is None:
            self._limiter = RunVar(f"limiter of {self!r}")
        try:
            return self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(1)
            self._limiter.set(limiter)
            return limiter

    def _append_alone(self, line: bytes) -> bool:
        """Append unless another thread does: of another loop, or given up while the disk hangs.

        The thread itself takes and frees the lock. A limiter would not do: on asyncio its token is
        free again as soon as the thread is given up.
        """
        if not self._writing.acquire(blocking=False):
            return False
        try:
            self._append(line)
        finally:
            self._writing.release()
        return True

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            if self._torn:  # what a full disk cut off must not swallow the next line
                line = b"\n" + line
            written = os.write(descriptor, line)
            self._torn = written < len(line)
        finally:
            os.close(descriptor)
        if self._torn:
            raise OSError(f"only {written} of {len(line)} bytes could be appended")


class QueueSink:
    """Keeps the newest events in memory until the host takes them with `drain()`.

    It never waits. When it is full, the oldest event is dropped, and a warning says so once. It
    can be used from several threads and event loops.

    Args:
        maxsize: How many events it holds.

    Raises:
        ConfigurationError: `maxsize` is not a positive whole number.

    Example: `for event in sink.drain(): ship(event.as_dict())`
    """

    __slots__ = ("_dropped", "_events", "_lock")

    def __init__(self, maxsize: int = 1000) -> None:
        whole = isinstance(maxsize, int) and not isinstance(maxsize, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or not 1 <= maxsize <= sys.maxsize:
            raise ConfigurationError(
                f"QueueSink(maxsize={shown(maxsize)}) has no meaning",
                hint="give how many events it holds, such as maxsize=1000",
            )
        self._events: deque[AuditEvent] = deque(maxlen=maxsize)
        self._dropped = 0
        self._lock = Lock()

    @property
    def dropped(self) -> int:
        """How many events were lost because nobody drained in time."""
        return self._dropped

    async def emit(self, event: AuditEvent) -> None:
        """Keep the event, dropping the oldest one if need be."""
        with self._lock:
            full = len(self._events) == self._events.maxlen
            self._dropped += full
            self._events.append(event)
            first = full and self._dropped == 1
        if first:
            warn(
                f"a QueueSink of {self._events.maxlen} events is full and drops the oldest; "
                "call drain() more often or give it a larger maxsize",
                AuditSinkWarning,
            )

    def drain(self) -> tuple[AuditEvent, ...]:
        """Take out all events that are waiting, the oldest first. It never waits itself."""
        with self._lock:
            events = tuple(self._events)
            self._events.clear()
        return events
