"""How an operation's end shows in its span."""

from __future__ import annotations

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import sandboxio

CANARY = "c4n4ry-v4lue"
FOREVER = ("tail", "-f", "/dev/null")


async def test_an_error_of_ours_gives_its_code_and_its_redacted_message(spans, fake):
    async with sandboxio.create(fake, secrets={"TOKEN": CANARY}) as sb:
        with pytest.raises(sandboxio.PathNotFound):
            await sb.files.read(f"no-such-{CANARY}")
    span = spans.named("sandboxio.files.read")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "SBX_E1701"
    assert span.status.description is not None
    assert "[redacted]" in span.status.description
    assert span.events == ()


async def test_a_timeout_is_an_error(spans, fake):
    async with sandboxio.create(fake) as sb:
        with pytest.raises(sandboxio.ExecutionTimeout):
            await sb.run(["sleep", "1000"], timeout=0.01)
    span = spans.named("execute_tool run")
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "SBX_E1302")
    assert "sandboxio.exit_code" not in span.attributes


async def test_an_exit_code_is_an_answer_and_no_error(spans, fake):
    async with sandboxio.create(fake) as sb:
        await sb.run("exit 3")
    span = spans.named("execute_tool run")
    assert (span.status.status_code, span.attributes["sandboxio.exit_code"]) == (StatusCode.UNSET, 3)


async def test_a_creation_that_fails_leaves_a_span_without_a_sandbox(spans, fake):
    with fake.failing_creates(OSError(f"no {CANARY}")), pytest.raises(sandboxio.SandboxError):
        await sandboxio.create(fake, secrets={"TOKEN": CANARY})
    span = spans.named("sandboxio.create")
    assert span.status.status_code is StatusCode.ERROR
    assert "sandboxio.sandbox.id" not in span.attributes
    assert CANARY not in span.to_json()


async def test_a_cancelled_operation_ends_its_span_as_cancelled(spans, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            with anyio.move_on_after(0.02) as scope:
                await sb.run(FOREVER)
            assert trace.get_current_span() is agent
    assert scope.cancelled_caught
    span = spans.named("execute_tool run")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "cancelled"


async def test_what_a_caller_raises_in_a_stream_is_named_by_its_type_alone(spans, fake):
    async with sandboxio.create(fake) as sb:
        with pytest.raises(ZeroDivisionError):
            async with sb.stream(FOREVER):
                raise ZeroDivisionError(CANARY)
    span = spans.named("execute_tool stream")
    assert span.attributes["error.type"] == "ZeroDivisionError"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
