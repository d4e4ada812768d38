"""The one record that every operation opens once and closes once.

Redaction happens at the close; what is rendered from the record afterwards (an event for the audit
sinks, what a span says, the meter on a result) can therefore hold no secret.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from types import TracebackType
from typing import Self

from sandboxio.adapter.guard import Identity
from sandboxio.audit import AuditConfig, AuditEvent, deliver
from sandboxio.errors import AuditSinkError, SandboxError
from sandboxio.models import Meter
from sandboxio.otel import OperationSpan, start_span
from sandboxio.redaction import Redactor
from sandboxio.release import uninterrupted

__all__ = ["Operation", "Recorder"]


class Recorder:
    """Opens the records of one sandbox."""

    __slots__ = ("audit", "identity", "redactor")

    def __init__(self, identity: Identity, audit: AuditConfig, redactor: Redactor) -> None:
        self.identity = identity
        self.audit = audit
        self.redactor = redactor

    def operation(self, event: str, *, argv: Sequence[str] = (), code: str | None = None) -> Operation:
        """A record to be used as `async with recorder.operation("run", argv=[…]) as op`."""
        return Operation(self, event, tuple(argv), code)


class Operation:
    """One open record. What is learnt meanwhile is set on its attributes.

    Attributes:
        identity: Who did it; set late by a creation, which learns it on the way.
        exit_code: How an execution ended.
        bytes_in: What went into the sandbox.
        bytes_out: What came out of it.
        network_denials: Connections that the policy refused; `None` where nobody can tell.
    """

    __slots__ = (
        "_argv",
        "_code",
        "_concluded",
        "_event",
        "_recorder",
        "_span",
        "_started",
        "bytes_in",
        "bytes_out",
        "exit_code",
        "identity",
        "network_denials",
    )

    def __init__(self, recorder: Recorder, event: str, argv: tuple[str, ...], code: str | None) -> None:
        self._recorder = recorder
        self._event = event
        self._argv = argv
        self._code = code
        self._started = 0.0
        self._span: OperationSpan | None = None
        self._concluded = False
        self.identity = recorder.identity
        self.exit_code: int | None = None
        self.bytes_in = 0
        self.bytes_out = 0
        self.network_denials: int | None = None

    def conclude(self, exit_code: int) -> None:
        """Note that an execution has ended; what its caller raises afterwards is no failure of it."""
        self.exit_code = exit_code
        self._concluded = True

    @property
    def duration_ms(self) -> int:
        """Milliseconds since the record was opened."""
        return round((time.perf_counter() - self._started) * 1000)

    def meter(self) -> Meter:
        """The rendering that goes onto a result."""
        return Meter(self.duration_ms, self.identity.backend)

    async def __aenter__(self) -> Self:
        self._started = time.perf_counter()
        self._span = start_span(self._event, self.identity.backend)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc, SandboxError):  # what a caller's own code raises is the caller's
            self._recorder.redactor.error(exc)
        audit = self._recorder.audit
        if self._span is None and not audit.sinks:
            return
        event = self._render(exc)
        if self._span is not None:
            self._span.end(event, exc, captured=audit.capture_code)
        if audit.sinks:
            await self._deliver(event, exc)

    async def _deliver(self, event: AuditEvent, exc: BaseException | None) -> None:
        try:
            await uninterrupted(lambda: deliver(self._recorder.audit, event))
        except AuditSinkError as failure:
            if exc is None:
                raise
            exc.add_note(str(failure))

    def _render(self, exc: BaseException | None) -> AuditEvent:
        redactor = self._recorder.redactor
        metadata = self.identity.metadata
        code = self._code
        return AuditEvent(
            ts=datetime.now(UTC),
            event=self._event,
            sandbox_id=self.identity.id,
            backend=self.identity.backend,
            isolation=self.identity.isolation.value,
            loosened=self.identity.loosened,
            tenant_id=metadata.get("tenant_id"),
            session_id=metadata.get("session_id"),
            code_sha256=None if code is None else sha256(code.encode()).hexdigest(),
            argv=redactor.texts(self._argv),
            exit_code=self.exit_code,
            duration_ms=self.duration_ms,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            network_denials=self.network_denials,
            code=redactor.text(code) if code is not None and self._recorder.audit.capture_code else None,
            error_code=None if self._concluded and not isinstance(exc, SandboxError) else _error_code(exc),
        )


def _error_code(exc: BaseException | None) -> str | None:
    if exc is None:
        return None
    if isinstance(exc, SandboxError):
        return exc.code
    return "error" if isinstance(exc, Exception) else "cancelled"
