"""Every operation leaves an audit event and a span, and a secret is in neither.

Needs the extra `docker` and the OpenTelemetry SDK (`opentelemetry-sdk`), which a host that traces
has anyway.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import sandboxio
from sandboxio import AuditConfig, FileSink
from sandboxio_docker import DockerConfig

API_TOKEN = "tok-5up3r-s3cr3t"


def one_line(span: ReadableSpan) -> str:
    """A span as one line; a real host sends it to its collector instead."""
    attributes = span.attributes or {}
    failed = f", {attributes['error.type']!s}" if "error.type" in attributes else ""
    below = " (below the agent's)" if span.parent else ""
    return f"span: {span.name}{below}{failed}\n"


async def main() -> None:
    """Trace as a host does, run what succeeds and what fails, then read the audit file."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=one_line)))
    trace.set_tracer_provider(provider)

    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "audit.jsonl"
        target = DockerConfig(audit=AuditConfig(sinks=(FileSink(log),)))
        labels = {"tenant_id": "acme", "session_id": "s-17"}
        with trace.get_tracer("agent").start_as_current_span("agent"):
            async with sandboxio.create(
                target, secrets={"API_TOKEN": API_TOKEN}, metadata=labels, timeout=60
            ) as sandbox:
                await sandbox.run(["echo", f"--token={API_TOKEN}"])
                try:
                    await sandbox.run(["sleep", "60"], timeout=1)
                except sandboxio.ExecutionTimeout as error:
                    print(error.code)

        text = log.read_text()
        for event in map(json.loads, text.splitlines()):
            print("event:", event["event"], event["tenant_id"], event["argv"], event["error_code"] or "ok")
        print("the secret is in the audit file:", API_TOKEN in text)


if __name__ == "__main__":
    asyncio.run(main())
