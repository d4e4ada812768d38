"""Where spans nest: under the caller's, with what happens during an operation below them."""

from __future__ import annotations

import threading

import anyio
from opentelemetry import trace

import sandboxio


async def test_spans_nest_under_the_callers_span(spans, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            await sb.run(["true"])
            assert trace.get_current_span() is agent
    below = [agent.get_span_context().span_id] * 3
    assert spans.parents("sandboxio.create", "execute_tool run", "sandboxio.kill") == below


async def test_what_happens_during_an_operation_nests_below_it(spans, fake, tracer):
    def answer(call):
        with tracer.start_as_current_span("request of the provider"):
            return "4"

    fake.on_run("compute", returns=answer)
    async with sandboxio.create(fake) as sb:
        await sb.run(["compute"])
    run = spans.named("execute_tool run")
    assert spans.parents("request of the provider") == [run.context.span_id]


async def test_the_span_of_a_stream_lasts_as_long_as_the_stream(spans, fake):
    async with sandboxio.create(fake) as sb:
        async with sb.stream("echo one; echo two") as process:
            async for _ in process:
                assert "execute_tool stream" not in spans.names()
        span = spans.named("execute_tool stream")
    assert span.attributes["sandboxio.bytes_out"] == 8
    assert span.attributes["sandboxio.exit_code"] == 0


async def test_the_block_of_a_stream_stays_under_the_callers_span(spans, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb, sb.stream(["true"]) as process:
            assert trace.get_current_span() is agent
            await process.wait()
    assert spans.parents("execute_tool stream") == [agent.get_span_context().span_id]


async def test_a_stream_can_end_in_another_task_than_it_began(spans, fake, caplog):
    async with sandboxio.create(fake) as sb:
        process = sb.stream(["true"])
        async with anyio.create_task_group() as group:
            group.start_soon(process.__aenter__)
        await process.wait()
        await process.__aexit__(None, None, None)
    assert spans.named("execute_tool stream").end_time is not None
    assert caplog.records == []


async def test_concurrent_operations_are_siblings(spans, fake, tracer):
    with tracer.start_as_current_span("agent") as agent:
        async with sandboxio.create(fake) as sb:
            async with anyio.create_task_group() as group:
                for number in range(5):
                    group.start_soon(sb.run, ["sh", "-c", f"sleep 0.0{number}"])
    assert spans.parents("execute_tool run") == [agent.get_span_context().span_id] * 5


class TestSyncFacade:
    def test_spans_nest_under_the_span_of_the_calling_thread(self, spans, fake, tracer):
        with tracer.start_as_current_span("script") as script:
            with sandboxio.create_sync(fake) as sb:
                sb.run(["true"])
                with sb.stream(["echo", "x"]) as process:
                    list(process)
                sb.files.write("note", b"x")
        ours = set(spans.names()) - {"script"}
        assert spans.parents(*ours) == [script.get_span_context().span_id] * 5

    def test_two_threads_of_one_sandbox_keep_their_own_spans(self, spans, fake, tracer):
        def work(name: str) -> None:
            with tracer.start_as_current_span(name):
                sb.run(["echo", name])

        with sandboxio.create_sync(fake) as sb:
            threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        parents = {spans.named(name).context.span_id for name in ("one", "two")}
        assert set(spans.parents("execute_tool run")) == parents

    def test_without_a_span_of_the_caller_ours_are_roots(self, spans, fake):
        with sandboxio.create_sync(fake) as sb:
            sb.run(["true"])
        assert spans.parents() == [None, None, None]
