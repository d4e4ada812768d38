"""A cell tells what the code interpreter's would."""

from __future__ import annotations

import pytest
from e2b_server.ports import Machine
from machine_suite import (
    execute,
    one,
    output,
    refused,
    texts,
)

pytestmark = pytest.mark.docker


async def test_a_cell_tells_its_number_its_output_and_its_result(machine: Machine, context: str) -> None:
    code = """
import sys, subprocess, os
print("a")
os.write(1, b"b\\n")
subprocess.run(["echo", "c"])
print("e", file=sys.stderr)
x = 41
x + 1
"""
    messages = await execute(machine, context, code)
    assert messages[0] == {"type": "number_of_executions", "execution_count": 1}
    assert texts(messages, "stdout") == "a\nb\nc\n"
    assert texts(messages, "stderr") == "e\n"
    assert messages[-2] == {"type": "result", "text": "42", "is_main_result": True}
    assert messages[-1] == {"type": "end_of_execution"}
    messages = await execute(machine, context, "x")
    assert messages[0]["execution_count"] == 2
    assert one(messages, "result")["text"] == "41"


async def test_output_is_streamed_while_the_cell_runs(machine: Machine, context: str) -> None:
    await output(machine, "rm -f cell; mkfifo cell")
    code = "print('before', end='')\nopen('cell').read()\nprint('after', end='')"
    seen = ""
    async for message in machine.kernels.execute(context, code, {}):
        if message["type"] == "stdout":
            seen += message["text"]
            assert isinstance(message["timestamp"], int)
            if seen == "before":
                await output(machine, "echo go > cell")
    assert seen == "beforeafter"


async def test_results_carry_every_form_that_an_object_has(machine: Machine, context: str) -> None:
    code = """
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_json_(self): return {"a": [1]}
    def _repr_markdown_(self): return "*m*"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def _repr_javascript_(self): return "x()"
    def _repr_jpeg_(self): return b"jpeg"
    def _repr_pdf_(self): return b"pdf"
    def _repr_mimebundle_(self, include=None, exclude=None): return {"application/x-own": 1}
display("shown")
Rich()
"""
    shown, main = [m for m in await execute(machine, context, code) if m["type"] == "result"]
    assert shown == {"type": "result", "text": "shown", "is_main_result": False}
    assert main == {
        "type": "result",
        "is_main_result": True,
        "text": "rich",
        "html": "<b>",
        "markdown": "*m*",
        "svg": "<svg/>",
        "png": "iVBORw==",
        "jpeg": "anBlZw==",
        "pdf": "cGRm",
        "latex": "$x$",
        "json": {"a": [1]},
        "javascript": "x()",
        "extra": {"application/x-own": 1},
    }


async def test_a_result_larger_than_the_window_arrives_whole(machine: Machine, context: str) -> None:
    assert len(one(await execute(machine, context, "'x' * 3_000_000"), "result")["text"]) == 3_000_000


async def test_top_level_await_works_and_a_loop_runs_already(machine: Machine, context: str) -> None:
    assert (
        one(await execute(machine, context, "import asyncio\nawait asyncio.sleep(0, 5)"), "result")["text"]
        == "5"
    )
    failure = one(await execute(machine, context, "asyncio.run(asyncio.sleep(0))"), "error")
    assert "running event loop" in failure["value"]


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("1 / 0", "ZeroDivisionError", "division by zero"),
        ("import sys; sys.exit(3)", "SystemExit", "3"),
        ("def f(:", "SyntaxError", None),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("input('?')", "StdinNotImplementedError", None),
    ],
)
async def test_a_failed_cell_is_an_error_message(
    machine: Machine, context: str, code: str, name: str, value: str | None
) -> None:
    messages = await execute(machine, context, f"pass\n{code}")
    failure = one(messages, "error")
    assert failure["name"] == name
    assert value is None or failure["value"] == value
    assert name in failure["traceback"]
    assert "agent" not in failure["traceback"]
    assert messages[-1]["type"] == "end_of_execution"
    assert one(await execute(machine, context, "'alive'"), "result")["text"] == "alive"


async def test_variables_last_for_one_cell(machine: Machine, context: str) -> None:
    code = "import os\n[os.environ.get(n) for n in ('OWN', 'KEPT', 'OF_MACHINE')]"
    during = await execute(machine, context, code, {"OWN": "1", "KEPT": "cell"})
    assert one(during, "result")["text"] == "['1', 'cell', 'yes']"
    assert one(await execute(machine, context, code), "result")["text"] == "[None, 'old', 'yes']"


async def test_a_quote_in_a_variable_breaks_the_cell(machine: Machine, context: str) -> None:
    assert one(await execute(machine, context, "1", {"A": "it's"}), "error")["name"] == "SyntaxError"
    messages = await execute(machine, context, "1", {"A": "x'; print('injected'); y='"})
    assert texts(messages, "stdout") == "injected\n"


async def test_a_language_without_a_kernel_is_refused(machine: Machine) -> None:
    for language in ("javascript", "r", "java", "klingon"):
        await refused("invalid_argument", machine.kernels.open(language, None))
