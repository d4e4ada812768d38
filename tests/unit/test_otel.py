"""Spans of operations: where they nest, what they say, and that there are none unless the host traces."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

import sandboxio
from sandboxio import AuditConfig, ExecResult
from sandboxio.testing.fake import FakeBackend, FakeConfig

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sandboxio"
CANARY = "c4n4ry-v4lue"

FOREVER = ("tail", "-f", "/dev/null")


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What a host that traces exports; its provider is this test's alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> trace.Tracer:
    return trace.get_tracer_provider().get_tracer("host")


@pytest.fixture
def fake() -> FakeBackend:
    return FakeBackend()


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


def names(exporter: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exporter.get_finished_spans()]


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_a_command_is_a_tool_that_is_executed(exporter, fake):
    async with sandboxio.create(fake, metadata={"tenant_id": "acme", "session_id": "s-1"}) as sb:
        await sb.run(["echo", "hi"])
    span = named(exporter, "execute_tool run")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert attributes(span) == {
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


async def test_the_instrumentation_scope_names_the_library_and_the_conventions(exporter, fake):
    async with sandboxio.create(fake):
        pass
    scope = named(exporter, "sandboxio.create").instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version) == ("sandboxio", sandboxio.__version__)
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.37.0"


async def test_every_operation_has_one_span_and_only_executions_are_tools(exporter, fake):
    async with sandboxio.create(fake) as sb:
        await sb.run_code("print(1)")
        async with sb.stream(["echo", "x"]) as process:
            await process.wait()
        await sb.files.write("note", b"x")
        await sb.files.read("note")
    assert names(exporter) == [
        "sandboxio.create",
        "execute_tool run_code",
        "execute_tool stream",
        "sandboxio.files.write",
        "sandboxio.files.read",
        "sandboxio.kill",
    ]
    for span in exporter.get_finished_spans():
        is_tool = span.name.startswith("execute_tool ")
        assert ("gen_ai.operation.name" in attributes(span)) is is_tool


async def test_detaching_and_connecting_are_traced_too(exporter, fake):
    async with sandboxio.create(fake) as sb:
        sandbox_id = await sb.detach()
    async with sandboxio.connect(fake, sandbox_id):
        pass
    assert names(exporter) == ["sandboxio.create", "sandboxio.detach", "sandboxio.connect"]
    assert attributes(named(exporter, "sandboxio.connect"))["sandboxio.sandbox.id"] == sandbox_id


async def test_spans_nest_under_the_callers_span(exporter, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            await sb.run(["true"])
            assert trace.get_current_span() is agent
    ours = [span for span in exporter.get_finished_spans() if span.name != "agent"]
    assert [parent_id(span) for span in ours] == [agent.get_span_context().span_id] * 3


async def test_a_span_covers_the_time_of_its_operation(exporter, fake, tracer):
    with fake.slow_creates(0.05):
        async with sandboxio.create(fake):
            pass
    span = named(exporter, "sandboxio.create")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time >= 50_000_000


async def test_what_happens_during_an_operation_nests_below_it(exporter, fake, tracer):
    def answer(call):
        with tracer.start_as_current_span("request of the provider"):
            return "4"

    fake.on_run("compute", returns=answer)
    async with sandboxio.create(fake) as sb:
        await sb.run(["compute"])
    run = named(exporter, "execute_tool run")
    assert parent_id(named(exporter, "request of the provider")) == run.context.span_id


async def test_the_span_of_a_stream_lasts_as_long_as_the_stream(exporter, fake):
    async with sandboxio.create(fake) as sb:
        async with sb.stream("echo one; echo two") as process:
            async for _ in process:
                assert "execute_tool stream" not in names(exporter)
        span = named(exporter, "execute_tool stream")
    assert attributes(span)["sandboxio.bytes_out"] == 8
    assert attributes(span)["sandboxio.exit_code"] == 0


async def test_the_block_of_a_stream_stays_under_the_callers_span(exporter, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb, sb.stream(["true"]) as process:
            assert trace.get_current_span() is agent
            await process.wait()
    assert parent_id(named(exporter, "execute_tool stream")) == agent.get_span_context().span_id


async def test_a_stream_can_end_in_another_task_than_it_began(exporter, fake, caplog):
    async with sandboxio.create(fake) as sb:
        process = sb.stream(["true"])
        async with anyio.create_task_group() as group:
            group.start_soon(process.__aenter__)
        await process.wait()
        await process.__aexit__(None, None, None)
    assert named(exporter, "execute_tool stream").end_time is not None
    assert caplog.records == []


async def test_an_error_of_ours_gives_its_code_and_its_redacted_message(exporter, fake):
    async with sandboxio.create(fake, secrets={"TOKEN": CANARY}) as sb:
        with pytest.raises(sandboxio.PathNotFound):
            await sb.files.read(f"no-such-{CANARY}")
    span = named(exporter, "sandboxio.files.read")
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "SBX_E1701"
    assert span.status.description is not None
    assert "[redacted]" in span.status.description
    assert span.events == ()


async def test_a_timeout_is_an_error(exporter, fake):
    async with sandboxio.create(fake) as sb:
        with pytest.raises(sandboxio.ExecutionTimeout):
            await sb.run(["sleep", "1000"], timeout=0.01)
    span = named(exporter, "execute_tool run")
    assert (span.status.status_code, attributes(span)["error.type"]) == (StatusCode.ERROR, "SBX_E1302")
    assert "sandboxio.exit_code" not in attributes(span)


async def test_an_exit_code_is_an_answer_and_no_error(exporter, fake):
    async with sandboxio.create(fake) as sb:
        await sb.run("exit 3")
    span = named(exporter, "execute_tool run")
    assert (span.status.status_code, attributes(span)["sandboxio.exit_code"]) == (StatusCode.UNSET, 3)


async def test_a_creation_that_fails_leaves_a_span_without_a_sandbox(exporter, fake):
    with fake.failing_creates(OSError(f"no {CANARY}")), pytest.raises(sandboxio.SandboxError):
        await sandboxio.create(fake, secrets={"TOKEN": CANARY})
    span = named(exporter, "sandboxio.create")
    assert span.status.status_code is StatusCode.ERROR
    assert "sandboxio.sandbox.id" not in attributes(span)
    assert CANARY not in span.to_json()


async def test_a_cancelled_operation_ends_its_span_as_cancelled(exporter, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            with anyio.move_on_after(0.02) as scope:
                await sb.run(FOREVER)
            assert trace.get_current_span() is agent
    assert scope.cancelled_caught
    span = named(exporter, "execute_tool run")
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "cancelled"


async def test_what_a_caller_raises_in_a_stream_is_named_by_its_type_alone(exporter, fake):
    async with sandboxio.create(fake) as sb:
        with pytest.raises(ZeroDivisionError):
            async with sb.stream(FOREVER):
                raise ZeroDivisionError(CANARY)
    span = named(exporter, "execute_tool stream")
    assert attributes(span)["error.type"] == "ZeroDivisionError"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


async def test_concurrent_operations_are_siblings(exporter, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            async with anyio.create_task_group() as group:
                for number in range(5):
                    group.start_soon(sb.run, ["sh", "-c", f"sleep 0.0{number}"])
    runs = [span for span in exporter.get_finished_spans() if span.name == "execute_tool run"]
    assert [parent_id(span) for span in runs] == [agent.get_span_context().span_id] * 5


async def everything_with_a_secret(fake: FakeBackend) -> None:
    """Put a secret wherever a caller can put one, and let operations succeed, fail and be cancelled."""
    fake.on_run("answer", returns=ExecResult(0, CANARY, CANARY))
    async with sandboxio.create(fake, secrets={"TOKEN": CANARY}) as sb:
        await sb.run(["answer", f"--key={CANARY}"], env={"ALSO": CANARY}, stdin=CANARY)
        await sb.run_code(f"print({CANARY!r})")
        await sb.files.write(CANARY, CANARY)
        await sb.files.rename(CANARY, f"{CANARY}.2")
        async with sb.stream(f"echo {CANARY}") as process:
            await process.wait()
        for failing in (
            lambda: sb.files.read(f"{CANARY}/none"),
            lambda: sb.run(["true"], cwd=f"/none/{CANARY}"),
            lambda: sb.run(f"sleep 1000 # {CANARY}", timeout=0.01),
        ):
            with pytest.raises(sandboxio.SandboxError):
                await failing()
        with anyio.move_on_after(0.01):
            await sb.run([*FOREVER, CANARY])
        for raised in (RuntimeError(CANARY), sandboxio.ExecutionError(CANARY, hint=CANARY)):
            with pytest.raises(type(raised)):
                async with sb.stream([*FOREVER, CANARY]):
                    raise raised


@pytest.mark.parametrize("captured", [False, True])
async def test_a_secret_is_in_no_span(exporter, captured):
    fake = FakeBackend(FakeConfig(audit=AuditConfig(capture_code=captured)))
    await everything_with_a_secret(fake)
    exported = [span.to_json() for span in exporter.get_finished_spans()]
    assert len(exported) == 13
    assert [text for text in exported if CANARY in text] == []
    assert any("[redacted]" in text for text in exported)


@pytest.mark.parametrize("captured", [False, True])
async def test_code_and_commands_are_shown_only_where_the_host_captures_them(exporter, captured):
    fake = FakeBackend(FakeConfig(audit=AuditConfig(capture_code=captured)))
    async with sandboxio.create(fake) as sb:
        await sb.run(["echo", "words"])
        await sb.run_code("print('words')")
    run, code = named(exporter, "execute_tool run"), named(exporter, "execute_tool run_code")
    assert attributes(run).get("sandboxio.argv") == (("echo", "words") if captured else None)
    assert attributes(code).get("sandboxio.code") == ("print('words')" if captured else None)
    assert len(str(attributes(code)["sandboxio.code.sha256"])) == 64


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


async def test_sinks_and_spans_are_rendered_from_the_same_record(exporter):
    sink = sandboxio.QueueSink()
    fake = FakeBackend(FakeConfig(audit=AuditConfig(sinks=(sink,))))
    async with sandboxio.create(fake) as sb:
        await sb.run(["echo", "hi"])
    spans = [attributes(span)["sandboxio.operation"] for span in exporter.get_finished_spans()]
    assert spans == [event.event for event in sink.drain()]


class TestSyncFacade:
    def test_spans_nest_under_the_span_of_the_calling_thread(self, exporter, fake, tracer):
        with tracer.start_as_current_span("script") as script:
            with sandboxio.create_sync(fake) as sb:
                sb.run(["true"])
                with sb.stream(["echo", "x"]) as process:
                    list(process)
                sb.files.write("note", b"x")
        ours = [span for span in exporter.get_finished_spans() if span.name != "script"]
        assert [parent_id(span) for span in ours] == [script.get_span_context().span_id] * 5

    def test_two_threads_of_one_sandbox_keep_their_own_spans(self, exporter, fake, tracer):
        def work(name: str) -> None:
            with tracer.start_as_current_span(name):
                sb.run(["echo", name])

        with sandboxio.create_sync(fake) as sb:
            threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        parents = {named(exporter, name).context.span_id for name in ("one", "two")}
        runs = [span for span in exporter.get_finished_spans() if span.name == "execute_tool run"]
        assert {parent_id(span) for span in runs} == parents

    def test_without_a_span_of_the_caller_ours_are_roots(self, exporter, fake):
        with sandboxio.create_sync(fake) as sb:
            sb.run(["true"])
        assert [parent_id(span) for span in exporter.get_finished_spans()] == [None, None, None]


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


ATTRIBUTE = re.compile(r"gen_ai\.[a-z_.]+|error\.type|execute_tool\b.*|sandboxio\.[a-z_0-9.]+")


def attribute_names(source: str) -> set[str]:
    """Return the strings of a module that are names of attributes or of spans."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and ATTRIBUTE.fullmatch(text)}


OURS = attribute_names((SOURCE / "otel.py").read_text(encoding="utf-8"))
MODULES = sorted({*SOURCE.rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")} - {SOURCE / "otel.py"})


def strays(source: str) -> set[str]:
    """Return the names that belong into the one file; any name of the conventions does."""
    return {name for name in attribute_names(source) if name in OURS or not name.startswith("sandboxio.")}


def test_the_names_are_where_they_are_looked_for():
    assert {"gen_ai.tool.name", "error.type", "sandboxio.exit_code"} <= OURS


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_of_attributes_stand_in_one_file(module: Path):
    assert strays(module.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "name", ["gen_ai.tool.name", "error.type", "sandboxio.exit_code", "execute_tool run"]
)
def test_a_stray_name_is_noticed(name: str):
    assert strays(f"span.set_attribute({name!r}, value)") == {name}
