"""What a span says of its operation."""

from __future__ import annotations

from opentelemetry.trace import SpanKind, StatusCode

import sandboxio
from sandboxio import AuditConfig
from sandboxio.testing.fake import FakeBackend, FakeConfig


async def test_a_command_is_a_tool_that_is_executed(spans, fake):
    async with sandboxio.create(fake, metadata={"tenant_id": "acme", "session_id": "s-1"}) as sb:
        await sb.run(["echo", "hi"])
    span = spans.named("execute_tool run")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "run",
        "gen_ai.tool.type": "function",
        "sandboxio.operation": "run",
        "sandboxio.backend": "fake",
        "sandboxio.sandbox.id": sb.id,
        "sandboxio.isolation.tier": "container",
        "sandboxio.tenant.id": "acme",
        "sandboxio.session.id": "s-1",
        "sandboxio.exit_code": 0,
        "sandboxio.bytes_in": 0,
        "sandboxio.bytes_out": 3,
    }


async def test_the_instrumentation_scope_names_the_library_and_the_conventions(spans, fake):
    async with sandboxio.create(fake):
        pass
    scope = spans.named("sandboxio.create").instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version) == ("sandboxio", sandboxio.__version__)
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.37.0"


async def test_every_operation_has_one_span_and_only_executions_are_tools(spans, fake):
    async with sandboxio.create(fake) as sb:
        await sb.run_code("print(1)")
        async with sb.stream(["echo", "x"]) as process:
            await process.wait()
        await sb.files.write("note", b"x")
        await sb.files.read("note")
    assert spans.names() == [
        "sandboxio.create",
        "execute_tool run_code",
        "execute_tool stream",
        "sandboxio.files.write",
        "sandboxio.files.read",
        "sandboxio.kill",
    ]
    for span in spans.get_finished_spans():
        is_tool = span.name.startswith("execute_tool ")
        assert ("gen_ai.operation.name" in span.attributes) is is_tool


async def test_detaching_and_connecting_are_traced_too(spans, fake):
    async with sandboxio.create(fake) as sb:
        sandbox_id = await sb.detach()
    async with sandboxio.connect(fake, sandbox_id):
        pass
    assert spans.names() == ["sandboxio.create", "sandboxio.detach", "sandboxio.connect"]
    assert spans.attributes("sandboxio.connect")["sandboxio.sandbox.id"] == sandbox_id


async def test_a_span_covers_the_time_of_its_operation(spans, fake, tracer):
    with fake.slow_creates(0.05):
        async with sandboxio.create(fake):
            pass
    span = spans.named("sandboxio.create")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time >= 50_000_000


async def test_sinks_and_spans_are_rendered_from_the_same_record(spans):
    sink = sandboxio.QueueSink()
    fake = FakeBackend(FakeConfig(audit=AuditConfig(sinks=(sink,))))
    async with sandboxio.create(fake) as sb:
        await sb.run(["echo", "hi"])
    operations = [span.attributes["sandboxio.operation"] for span in spans.get_finished_spans()]
    assert operations == [event.event for event in sink.drain()]
