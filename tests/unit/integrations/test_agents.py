"""What every framework's tools do in the hands of a real agent, on every backend."""

from __future__ import annotations

from contextlib import nullcontext

import anyio
import anyio.to_thread
import pytest

import sandboxio
from sandboxio.testing.fake import FakeBackend

FOLLOW = "MARKER=follow tail -f /dev/null"
"""A command that waits for ever, and can be counted."""

REACH_OUT = "import socket\nsocket.create_connection(('1.1.1.1', 443), timeout=3)"


async def test_an_agent_runs_code_and_reads_what_it_printed(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_code_tool(sandbox)
        assert tool.name == "run_code"
        assert await framework.answers(tool, {"code": "print(6 * 7)"}) == ["exit code 0\nstdout:\n42\n"]


async def test_an_agent_runs_commands_and_reads_both_streams_and_the_exit_code(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_command_tool(sandbox)
        assert tool.name == "run_command"
        (answer,) = await framework.answers(tool, {"command": "echo out; echo err >&2; exit 3"})
    assert answer == "exit code 3\nstdout:\nout\nstderr:\nerr\n"


async def test_code_that_fails_is_an_answer_with_its_traceback(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_code_tool(sandbox)
        (answer,) = await framework.answers(tool, {"code": "raise ValueError('unlucky')"})
    assert answer.startswith("exit code 1\nstderr:\n")
    assert "ValueError: unlucky" in answer


async def test_the_calls_of_a_shared_sandbox_share_its_files(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_command_tool(sandbox)
        calls = {"command": "echo kept > note"}, {"command": "cat note"}
        answers = await framework.answers(tool, *calls)
        assert answers[1] == "exit code 0\nstdout:\nkept\n"
        assert await sandbox.files.read("note") == b"kept\n"
    assert "Files stay" in tool.description


async def test_each_call_of_a_factory_has_a_sandbox_of_its_own_that_is_ended(framework, place):
    tool = framework.tools.make_command_tool(place.create)
    answers = await framework.answers(tool, {"command": "echo x > note"}, {"command": "cat note"})
    assert answers[0] == "exit code 0\n"
    assert answers[1].startswith("exit code 1\n")
    assert await place.count() == 0
    assert "Nothing stays" in tool.description


async def test_the_sandbox_of_a_factory_has_the_defaults_of_create(framework, place):
    tool = framework.tools.make_code_tool(place.create)
    (answer,) = await framework.answers(tool, {"code": REACH_OUT})
    assert answer.startswith("exit code 1\n")
    assert "Network is unreachable" in answer


async def test_a_timeout_is_an_answer_with_code_fix_and_the_output_until_then(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_command_tool(sandbox, timeout=1)
        (answer,) = await framework.answers(tool, {"command": "echo so far; tail -f /dev/null"})
    assert answer.startswith("[SBX_E1302] ")
    assert "\nFix: " in answer
    assert answer.endswith("stdout:\nso far\n")


async def test_a_sandbox_that_has_ended_is_an_answer_and_not_the_end_of_the_agent(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_code_tool(sandbox)
        await sandbox.kill()
        (answer,) = await framework.answers(tool, {"code": "print(1)"})
    assert answer.startswith("[SBX_E1204] ")
    assert "\nFix: " in answer


async def test_a_flood_of_output_reaches_the_model_bounded(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_code_tool(sandbox, max_chars=1000)
        (answer,) = await framework.answers(tool, {"code": "print('a' * 100000 + 'the end')"})
    assert len(answer) < 1100
    assert answer.startswith("exit code 0\nstdout:\naaa")
    assert "characters left out]" in answer
    assert answer.endswith("the end\n")


async def becomes(count, wanted: int) -> None:
    """Wait until as many exist; one framework cancels its tools without waiting for their end."""
    with anyio.fail_after(20):
        while await count() != wanted:
            await anyio.sleep(0.02)


async def test_cancelling_the_agent_ends_the_process_and_leaves_the_sandbox(framework, place):
    async with place.create() as sandbox:
        tool = framework.tools.make_command_tool(sandbox)
        async with anyio.create_task_group() as group:
            group.start_soon(framework.answers, tool, {"command": FOLLOW})
            await becomes(lambda: place.followers(sandbox), 1)
            group.cancel_scope.cancel()
        await becomes(lambda: place.followers(sandbox), 0)
        assert (await sandbox.run(["echo", "alive"])).stdout == "alive\n"


async def test_cancelling_the_agent_ends_the_sandbox_of_a_factory(framework, place):
    tool = framework.tools.make_command_tool(place.create)
    async with anyio.create_task_group() as group:
        group.start_soon(framework.answers, tool, {"command": FOLLOW})
        await becomes(place.count, 1)
        group.cancel_scope.cancel()
    await becomes(place.count, 0)


async def test_a_secret_in_an_error_does_not_reach_the_model(framework, place):
    async with place.create(secrets={"TOKEN": "c4n4ry-v4lue"}) as sandbox:
        tool = framework.tools.make_command_tool(sandbox)
        (answer,) = await framework.answers(tool, {"command": "true \0 c4n4ry-v4lue"})
    assert answer.startswith("[SBX_E1000] ")
    assert "c4n4ry" not in answer


async def test_a_fault_of_the_program_is_not_hidden_from_it(framework):
    def broken():
        raise LookupError("the host's own fault")

    tool = framework.tools.make_code_tool(broken)
    with pytest.raises(Exception, match="the host's own fault"):
        await framework.answers(tool, {"code": "print(1)"})


async def test_a_creation_that_fails_is_an_answer(framework, sbx_fake):
    tool = framework.tools.make_code_tool(sandboxio.create)
    with sbx_fake.failing_creates(sandboxio.CreationError("the provider has no room")):
        (answer,) = await framework.answers(tool, {"code": "print(1)"})
    assert answer.startswith("[SBX_E1201] the provider has no room\nFix: ")


@pytest.mark.parametrize(
    "arguments",
    [{}, {"program": "ls"}, {"command": 5}, {"command": ["ls", "/"]}, {"command": "ls", "timeout": 9999}],
    ids=str,
)
async def test_malformed_arguments_are_an_answer_that_says_what_to_give(framework, sbx_fake, arguments):
    tool = framework.tools.make_command_tool(sandboxio.create)
    (answer,) = await framework.answers(tool, arguments)
    assert answer == 'the arguments are malformed: give {"command": "…"} and nothing else'
    assert sbx_fake.calls == ()


async def make_later():
    return sandboxio.create()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: None, "NoneType"),
        (lambda: make_later(), "coroutine"),
        (lambda: nullcontext(5), "int"),
    ],
    ids=["nothing", "a coroutine", "a context of something else"],
)
async def test_a_function_that_makes_no_sandbox_is_told_in_the_answer(framework, make, what):
    (answer,) = await framework.answers(framework.tools.make_code_tool(make), {"code": "print(1)"})
    assert answer.startswith(
        f"[SBX_E1000] the tool's function made {what}, not an asynchronous sandbox\nFix: "
    )


async def test_a_synchronous_sandbox_of_a_function_runs_nothing(framework):
    fake = FakeBackend()
    with await anyio.to_thread.run_sync(sandboxio.create_sync, fake) as sandbox:
        tool = framework.tools.make_code_tool(lambda: sandbox)
        (answer,) = await framework.answers(tool, {"code": "print(1)"})
    assert "made SyncSandbox, not an asynchronous sandbox" in answer
    assert [call.operation for call in fake.calls] == ["create", "kill"]
