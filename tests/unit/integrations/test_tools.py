"""The tools as objects: what they are, what they refuse, and what a model's text looks like."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sandboxio
from sandboxio import ExecResult, ResourceLimitExceeded, RichOutput
from sandboxio.integrations.answers import Answers
from sandboxio.models import shown
from sandboxio.testing.fake import FakeBackend

FOLDER = Path(sandboxio.__file__).parent / "integrations"
MODULES = {"langgraph": "langchain_core", "openai_agents": "agents"}


INFINITE, NAN = float("inf"), float("nan")


async def make_later():
    """Not a function that makes a sandbox: what it gives is a coroutine."""
    return sandboxio.create()


def module(name):
    return importlib.import_module(f"sandboxio.integrations.{name}")


def test_the_tools_of_langgraph_are_its_own():
    from langchain_core.tools import BaseTool

    tool = module("langgraph").make_code_tool(sandboxio.create)
    assert isinstance(tool, BaseTool)
    schema = tool.get_input_schema().model_json_schema()
    assert (list(schema["properties"]), schema["required"]) == (["code"], ["code"])
    assert schema["additionalProperties"] is False


async def test_langgraph_gets_the_result_as_an_artifact_and_errors_marked_as_such(sbx_fake):
    tool = module("langgraph").make_command_tool(sandboxio.create)
    call = {"type": "tool_call", "id": "1", "name": tool.name, "args": {"command": "echo hi"}}
    message = await tool.ainvoke(call)
    assert (message.status, message.artifact.stdout) == ("success", "hi\n")
    with sbx_fake.unreachable():
        assert (await tool.ainvoke(call)).status == "error"


async def test_a_checkpointer_gives_the_fields_of_the_artifact_back(sbx_fake):
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    result = ExecResult(0, "hi", "", results=(RichOutput("image/png", b"\x89PNG"),))
    sbx_fake.on_run_code("plot", returns=result)
    tool = module("langgraph").make_code_tool(sandboxio.create)
    call = {"type": "tool_call", "id": "1", "name": tool.name, "args": {"code": "plot()"}}
    serializer = JsonPlusSerializer()
    stored = serializer.dumps_typed(await tool.ainvoke(call))
    artifact = serializer.loads_typed(stored).artifact
    assert (artifact["exit_code"], artifact["stdout"]) == (0, "hi")
    assert artifact["results"] == [{"mime_type": "image/png", "data": b"\x89PNG"}]


def test_langgraph_refuses_to_block(sbx_fake):
    tool = module("langgraph").make_code_tool(sandboxio.create)
    with pytest.raises(NotImplementedError, match="sync"):
        tool.invoke({"code": "print(1)"})
    assert sbx_fake.calls == ()


def test_the_tools_of_openai_agents_are_its_own_with_a_strict_schema():
    from agents import FunctionTool

    tool = module("openai_agents").make_command_tool(sandboxio.create)
    assert isinstance(tool, FunctionTool)
    assert tool.strict_json_schema
    assert list(tool.params_json_schema["properties"]) == ["command"]


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"command": 1}',
        '{"command": null}',
        '{"command": ["ls", "/"]}',
        '{"command": "ls", "timeout": 9999}',
        "[" * 200_000,
        "9" * 5000,
    ],
    ids=lambda arguments: arguments[:40],
)
async def test_openai_agents_answers_whatever_a_model_sends(sbx_fake, arguments):
    tool = module("openai_agents").make_command_tool(sandboxio.create)
    answer = await tool.on_invoke_tool(None, arguments)
    assert answer == 'the arguments are malformed: give {"command": "…"} and nothing else'
    assert sbx_fake.calls == ()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("make", ["make_code_tool", "make_command_tool"])
def test_a_tool_has_the_name_that_the_host_gives_it(name, make):
    assert getattr(module(name), make)(sandboxio.create, name="python_repl").name == "python_repl"


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("make", ["make_code_tool", "make_command_tool"])
def test_a_file_of_a_framework_stays_small(name, make):
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 100


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"sandbox": "docker://"}, "str"),
        ({"sandbox": None}, "NoneType"),
        ({"sandbox": FakeBackend()}, "FakeBackend"),
        ({"sandbox": make_later}, "asynchronous function"),
        *(
            ({"timeout": value}, "timeout")
            for value in (0, -1, None, "5", True, 10**400, 1e300, INFINITE, NAN)
        ),
        *(({"max_chars": value}, "max_chars") for value in (0, -1, None, "x", 10.5, True, -(10**5000))),
        *(({"name": value}, "name") for value in ("", "run code", "run\n", None, 5)),
    ],
    ids=lambda value: value if isinstance(value, str) else shown(value)[:40],
)
def test_an_argument_that_means_nothing_is_refused_when_the_tool_is_made(name, arguments, word):
    with pytest.raises(sandboxio.ConfigurationError, match=word):
        module(name).make_code_tool(**{"sandbox": sandboxio.create, **arguments})


@pytest.mark.parametrize("name", MODULES)
def test_a_synchronous_sandbox_is_refused_before_anything_runs_in_it(name, sbx_fake):
    with sandboxio.create_sync() as sandbox, pytest.raises(sandboxio.ConfigurationError, match="SyncSandbox"):
        module(name).make_code_tool(sandbox)
    assert [call.operation for call in sbx_fake.calls] == ["create", "kill"]


@pytest.mark.parametrize("name", MODULES)
def test_without_the_framework_the_command_that_installs_it_is_told(name, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    for submodule in ("langchain_core.tools", "agents.tool"):
        monkeypatch.setitem(sys.modules, submodule, None)
    with pytest.raises(sandboxio.ConfigurationError) as caught:
        module(name).make_code_tool(sandboxio.create)
    assert caught.value.code == "SBX_E1000"
    assert caught.value.hint == f"uv sync --inexact --extra {name.replace('_', '-')}"


@pytest.mark.parametrize("name", MODULES)
def test_importing_the_module_imports_no_framework(name):
    program = (
        f"import sys, json, sandboxio.integrations.{name}\n"
        f"print(json.dumps([m for m in sys.modules if m.partition('.')[0] in {list(MODULES.values())}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == []


def test_the_exit_code_comes_before_any_output():
    assert Answers().result(ExecResult(1, "exit code 0\n", "")) == "exit code 1\nstdout:\nexit code 0\n"


def test_silence_is_told_by_the_exit_code_alone():
    assert Answers().result(ExecResult(0, "", "\n")) == "exit code 0\n"


def test_rich_outputs_are_shown_as_text_or_named():
    results = (RichOutput("text/plain", "42"), RichOutput("image/png", b"\x89PNG"))
    answer = Answers().result(ExecResult(0, "", "", results=results))
    assert answer == "exit code 0\nresults:\n42\n[image/png, 4 bytes, not shown]\n"


def test_what_the_library_dropped_and_killed_is_said():
    answer = Answers().result(ExecResult(137, "x", "", truncated=True, oom_killed=True))
    assert answer.startswith("exit code 137, and a process was killed for want of memory\n")
    assert answer.endswith("[more was written and not kept]\n")


def test_each_part_is_bounded_on_its_own():
    answer = Answers(10).result(ExecResult(0, "o" * 50, "e" * 50))
    assert answer == (
        "exit code 0\nstdout:\nooooo\n[40 characters left out]\nooooo\n"
        "stderr:\neeeee\n[40 characters left out]\neeeee\n"
    )


def test_an_error_that_ended_an_execution_shows_what_it_had_written():
    partial = ExecResult(-1, "so far\n", "")
    answer = Answers().error(ResourceLimitExceeded("out of memory", hint="use less", partial=partial))
    assert answer == (
        "[SBX_E1402] out of memory\nFix: use less\n"
        "Docs: https://docs.sandboxio.dev/errors/SBX_E1402\nstdout:\nso far\n"
    )


async def test_a_factory_may_be_any_function_that_makes_a_context(sbx_fake):
    fake = FakeBackend()
    tool = module("openai_agents").make_code_tool(lambda: sandboxio.create(fake, timeout=60))
    assert await tool.on_invoke_tool(None, '{"code": "print(1)"}') == "exit code 0\nstdout:\n1\n"
    assert sbx_fake.calls == ()
    assert fake.sandboxes == ()
