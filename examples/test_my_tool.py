"""A tool of your own and its tests, which need no engine: `sbx_fake` stands behind every `create()`.

Run it with `uv run pytest examples/test_my_tool.py`. The fixture comes with the library.
"""

import asyncio

import pytest

import sandboxio
from sandboxio import ExecResult, ExecutionTimeout
from sandboxio.testing.fake import FakeBackend

SCRIPT = "import pandas; print(pandas.read_csv('data.csv').describe())"


async def summarise(table: str) -> str:
    """The tool: describe a table, or say in words why that was not possible."""
    async with sandboxio.create("docker://example/pandas:1") as sandbox:
        await sandbox.files.write("data.csv", table)
        try:
            result = await sandbox.run_code(SCRIPT, timeout=20)
        except ExecutionTimeout:
            return "the table is too large"
        return result.stdout if result.ok else f"no summary: {result.stderr.splitlines()[-1]}"


def test_the_summary_is_what_the_code_prints(sbx_fake: FakeBackend) -> None:
    """Script what the code would print, and look at what was asked."""
    sbx_fake.on_run_code("pandas", returns="count 3\n")
    assert asyncio.run(summarise("a\n1\n2\n3\n")) == "count 3\n"
    assert [call.operation for call in sbx_fake.calls] == ["create", "files", "run_code", "kill"]
    assert sbx_fake.calls[0].network.egress == "deny"


def test_a_table_that_cannot_be_read_is_told(sbx_fake: FakeBackend) -> None:
    """Script a failure of the code."""
    sbx_fake.on_run_code("pandas", returns=ExecResult(1, "", "Traceback\nParserError: no columns"))
    assert asyncio.run(summarise("")) == "no summary: ParserError: no columns"


def test_a_table_that_takes_too_long_is_told(sbx_fake: FakeBackend) -> None:
    """Script an error of the library."""
    late = ExecutionTimeout("it did not end within 20 s", partial=ExecResult(-1, "", ""))
    sbx_fake.on_run_code("pandas", raises=late)
    assert asyncio.run(summarise("a\n1\n")) == "the table is too large"


def test_nothing_is_left_behind_even_when_the_tool_fails(sbx_fake: FakeBackend) -> None:
    """Whatever the provider raises, the sandbox is gone afterwards."""
    sbx_fake.on_run_code("pandas", raises=RuntimeError("the provider is confused"))
    with pytest.raises(sandboxio.ConnectError):
        asyncio.run(summarise("a\n1\n"))
    assert sbx_fake.sandboxes == ()
