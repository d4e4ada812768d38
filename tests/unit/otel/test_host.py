"""There are no spans unless the host traces, and tracing that fails costs no operation."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import sandboxio


async def test_a_span_that_is_not_sampled_is_ended_and_not_filled(monkeypatch, fake):
    provider = TracerProvider(sampler=ALWAYS_OFF)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    before = trace.get_current_span()
    async with sandboxio.create(fake) as sb:
        assert (await sb.run(["echo", "hi"])).stdout == "hi\n"
    assert trace.get_current_span() is before


class Refusing(SpanProcessor):
    """A processor with a fault, at the start or at the end of spans."""

    def __init__(self, at: str) -> None:
        self.at = at

    def on_start(self, span: object, parent_context: object = None) -> None:
        if self.at == "start":
            raise RuntimeError("full")

    def on_end(self, span: object) -> None:
        if self.at == "end":
            raise RuntimeError("full")


@pytest.mark.parametrize("at", ["start", "end"])
async def test_tracing_that_fails_costs_the_span_and_not_the_operation(monkeypatch, fake, at):
    provider = TracerProvider()
    provider.add_span_processor(Refusing(at))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    before = trace.get_current_span()
    async with sandboxio.create(fake) as sb:
        assert (await sb.run(["echo", "hi"])).stdout == "hi\n"
        with pytest.raises(sandboxio.PathNotFound):
            await sb.files.read("none")
    assert fake.sandboxes == ()
    assert trace.get_current_span() is before


PROGRAM = """
import asyncio, sys
{before}
import sandboxio
from sandboxio.testing.fake import FakeBackend

async def main():
    async with sandboxio.create(FakeBackend()) as sb:
        await sb.run(["true"])

asyncio.run(main())
{after}
"""
SDK_TO_CONSOLE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
exporter = ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
"""


def output_of(before: str, after: str = "") -> str:
    program = PROGRAM.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_host_that_does_not_trace_does_not_even_load_the_api():
    printed = output_of("", "print([name for name in sys.modules if name.startswith('opentelemetry')])")
    assert printed == "[]\n"


@pytest.mark.parametrize("setting", ["", "trace.set_tracer_provider(trace.NoOpTracerProvider())"])
def test_a_host_that_set_no_provider_gets_no_spans(setting: str):
    before = f"from opentelemetry import trace\n{setting}"
    after = "from sandboxio.otel import start_span\nprint(start_span('run', 'fake'))"
    assert output_of(before, after) == "None\n"


def test_a_host_that_sets_a_provider_gets_its_spans():
    printed = output_of(f"{SDK_TO_CONSOLE}\ntrace.set_tracer_provider(provider)")
    assert printed.splitlines() == ["sandboxio.create", "execute_tool run", "sandboxio.kill"]


def test_a_provider_that_was_made_and_not_set_is_not_used():
    assert output_of(SDK_TO_CONSOLE) == ""
