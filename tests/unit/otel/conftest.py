"""A host that traces: what it exports, and what it traces with."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sandboxio.testing.fake import FakeBackend


class Spans(InMemorySpanExporter):
    """The spans that a host exported."""

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.get_finished_spans() if span.name == name]
        return span

    def attributes(self, name: str) -> dict[str, object]:
        return dict(self.named(name).attributes or {})

    def names(self) -> list[str]:
        return [span.name for span in self.get_finished_spans()]

    def parents(self, *names: str) -> list[int | None]:
        """The ids of the spans above those with one of these names, or above all of them."""
        chosen = [span for span in self.get_finished_spans() if not names or span.name in names]
        return [None if span.parent is None else span.parent.span_id for span in chosen]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """What a host that traces exports; its provider is this test's alone."""
    exporter = Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


@pytest.fixture
def tracer(spans: Spans) -> trace.Tracer:
    return trace.get_tracer_provider().get_tracer("host")


@pytest.fixture
def fake() -> FakeBackend:
    return FakeBackend()
