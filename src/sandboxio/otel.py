"""The record of an operation as an OpenTelemetry span. No other file holds a name of an attribute.

Commands and code are tools that are executed, so they follow the semantic conventions for
generative AI, version 1.37.0; what these do not name begins with `sandboxio.`. Nothing here imports
OpenTelemetry before the host has set a tracer provider, and without one there is no span.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sandboxio._version import __version__
from sandboxio.errors import SandboxError
from sandboxio.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

    from sandboxio.audit import AuditEvent

__all__ = ["OperationSpan", "start_span"]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.37.0"

_EXECUTIONS: Final = frozenset({"run", "run_code", "stream"})
"""The operations that execute a tool in the sense of the conventions."""

_CALLERS_BLOCK: Final = "stream"
"""The operation that stays open while code of the caller runs."""


def start_span(event: str, backend: str) -> OperationSpan | None:
    """Start the span of an operation below the caller's own, if the host traces at all.

    Args:
        event: The operation as the record names it, such as `run` or `files.read`.
        backend: The backend's name.

    Example: `span = start_span("run", "fake")`
    """
    provider = _provider_of_the_host()
    if provider is None:
        return None
    try:
        return OperationSpan(provider, event, backend)
    except Exception as exc:  # tracing that fails costs the span, never the operation
        _log_failure("start", exc)
        return None


class OperationSpan:
    """A span that was started. It ends once, with the closed record.

    What runs during the operation nests below it, such as the requests of a provider's SDK. Only a
    stream leaves the caller's own span in charge, since its block is the caller's code.
    """

    __slots__ = ("_span", "_token")

    def __init__(self, provider: TracerProvider, event: str, backend: str) -> None:
        from opentelemetry import context, trace

        tracer = provider.get_tracer("sandboxio", __version__, schema_url=SCHEMA_URL)
        attributes = {"sandboxio.operation": event, "sandboxio.backend": backend}
        name = f"sandboxio.{event}"
        if event in _EXECUTIONS:
            name = f"execute_tool {event}"
            attributes |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": event,
                "gen_ai.tool.type": "function",
            }
        self._span: Span = tracer.start_span(name, kind=trace.SpanKind.INTERNAL, attributes=attributes)
        self._token: Token[Context] | None = None
        if event != _CALLERS_BLOCK:
            self._token = context.attach(trace.set_span_in_context(self._span))

    def end(self, event: AuditEvent, exc: BaseException | None, *, captured: bool) -> None:
        """End it as the record ended.

        Args:
            event: The closed record, redacted.
            exc: What the operation raised, redacted.
            captured: Whether the host wants to see commands and code.
        """
        try:
            if self._token is not None:
                from opentelemetry import context

                context.detach(self._token)
            if self._span.is_recording():
                self._span.set_attributes(_attributes(event, captured=captured))
                if event.error_code is not None:
                    self._fail(event, exc)
            self._span.end()
        except Exception as failure:  # as above; most of all it must not replace `exc`
            _log_failure("end", failure)

    def _fail(self, event: AuditEvent, exc: BaseException | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        described = exc.message if isinstance(exc, SandboxError) else None
        self._span.set_attribute("error.type", _error_type(event, exc))
        self._span.set_status(Status(StatusCode.ERROR, described))


def _provider_of_the_host() -> TracerProvider | None:
    """The tracer provider, or `None`. A host that set one has imported OpenTelemetry, so we need not."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return None if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)) else provider


def _attributes(event: AuditEvent, *, captured: bool) -> dict[str, str | int | Sequence[str]]:
    values: dict[str, str | int | Sequence[str] | None] = {
        "sandboxio.sandbox.id": event.sandbox_id or None,
        "sandboxio.isolation.tier": event.isolation,
        "sandboxio.isolation.loosened": event.loosened or None,
        "sandboxio.tenant.id": event.tenant_id,
        "sandboxio.session.id": event.session_id,
        "sandboxio.exit_code": event.exit_code,
        "sandboxio.bytes_in": event.bytes_in,
        "sandboxio.bytes_out": event.bytes_out,
        "sandboxio.network_denials": event.network_denials,
        "sandboxio.code.sha256": event.code_sha256,
        "sandboxio.code": event.code,
        "sandboxio.argv": event.argv if captured else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _error_type(event: AuditEvent, exc: BaseException | None) -> str:
    if event.error_code == "error" and exc is not None:
        return type(exc).__qualname__
    return event.error_code or "_OTHER"


def _log_failure(verb: str, exc: Exception) -> None:
    get_logger().debug("a span could not %s: %s", verb, type(exc).__name__)
