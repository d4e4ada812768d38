"""The six tools, asked through the SDK's client."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent

from sandboxio import ExecResult, ExecutionTimeout, NetworkPolicy, RichOutput
from sandboxio.mcp import bounds
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.results import run_outcome
from sandboxio.mcp.sessions import Sandboxes
from sandboxio.testing.fake import FakeBackend

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
async def client(server: MCPServer[Sandboxes]) -> AsyncIterator[Client]:
    async with Client(server) as client:
        yield client


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def failure(result: CallToolResult) -> str:
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_run_python_returns_what_the_code_printed(client: Client) -> None:
    answer = structured(await client.call_tool("run_python", {"code": "print(6 * 7)"}))
    assert (answer["exit_code"], answer["stdout"], answer["stderr"]) == (0, "42\n", "")
    assert not answer["truncated"]


async def test_the_text_says_the_same_as_the_structured_output(client: Client) -> None:
    result = await client.call_tool("run_python", {"code": "print('ä')"})
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == structured(result)
    assert "ä" in content.text


async def test_a_failing_command_is_an_answer_and_no_error(client: Client) -> None:
    answer = structured(await client.call_tool("run_command", {"command": "echo no >&2; exit 3"}))
    assert (answer["exit_code"], answer["stderr"]) == (3, "no\n")


async def test_a_list_reaches_the_program_without_a_shell(client: Client, fake: FakeBackend) -> None:
    answer = structured(await client.call_tool("run_command", {"command": ["echo", "$HOME; ls"]}))
    assert answer["stdout"] == "$HOME; ls\n"
    assert fake.calls[-1].command == ("echo", "$HOME; ls")


async def test_a_command_has_its_folder_and_its_input(client: Client) -> None:
    await client.call_tool("write_file", {"path": "folder/a", "content": ""})
    text = '{"looks": "like JSON"}'
    answer = structured(
        await client.call_tool("run_command", {"command": "pwd; cat", "cwd": "folder", "stdin": text})
    )
    assert answer["stdout"] == f"/work/folder\n{text}"


async def test_variables_live_on_in_a_context_and_nowhere_else(client: Client) -> None:
    await client.call_tool("run_python", {"code": "x = 5", "context": "mine"})
    shared = structured(await client.call_tool("run_python", {"code": "print(x)", "context": "mine"}))
    clean = structured(await client.call_tool("run_python", {"code": "print(x)"}))
    assert shared["stdout"] == "5\n"
    assert clean["exit_code"] == 1


async def test_a_file_comes_back_as_it_was_written(client: Client) -> None:
    written = structured(await client.call_tool("write_file", {"path": "new/a.txt", "content": "ä\nb"}))
    answer = structured(await client.call_tool("read_file", {"path": "new/a.txt"}))
    assert written["size"] == answer["size"] == 4
    assert (answer["content"], answer["encoding"], answer["next_line"]) == ("ä\nb", "utf-8", None)


async def test_an_empty_file_is_empty(client: Client) -> None:
    await client.call_tool("write_file", {"path": "a", "content": ""})
    assert structured(await client.call_tool("read_file", {"path": "a"}))["content"] == ""


async def test_a_long_file_is_read_in_parts(client: Client) -> None:
    lines = [f"{number:06d} {'x' * 90}\n" for number in range(1000)]
    await client.call_tool("write_file", {"path": "long.txt", "content": "".join(lines)})
    parts: list[str] = []
    line: int | None = 1
    while line is not None:
        answer = structured(await client.call_tool("read_file", {"path": "long.txt", "start_line": line}))
        assert len(answer["content"]) <= bounds.MAX_TEXT
        parts.append(answer["content"])
        line = answer["next_line"]
    assert len(parts) > 1
    assert "".join(parts) == "".join(lines)


async def test_a_line_beyond_the_end_is_an_error_with_the_last_one(client: Client) -> None:
    await client.call_tool("write_file", {"path": "a", "content": "1\n2\n"})
    text = failure(await client.call_tool("read_file", {"path": "a", "start_line": 3}))
    assert "whose last line is 2" in text
    assert "Fix: give a start_line of at most 2\n" in text


async def test_lines_end_where_grep_ends_them(client: Client) -> None:
    content = "1\x0cstill\u2028still\x85still\rstill\r\n2\n3"
    await client.call_tool("write_file", {"path": "a", "content": content})
    answer = structured(await client.call_tool("read_file", {"path": "a", "start_line": 2}))
    assert answer["content"] == "2\n3"


async def test_a_line_that_is_too_long_says_what_is_missing_and_leads_on(client: Client) -> None:
    content = f"before\nbegin{'x' * 100_000}end\nafter\n"
    await client.call_tool("write_file", {"path": "a", "content": content})
    whole = structured(await client.call_tool("read_file", {"path": "a"}))
    assert (whole["content"], whole["next_line"], whole["truncated"]) == ("before\n", 2, False)
    cut = structured(await client.call_tool("read_file", {"path": "a", "start_line": 2}))
    assert cut["truncated"]
    assert cut["next_line"] == 3
    assert cut["content"].startswith("begin")
    assert cut["content"].endswith("end\n")
    assert "characters left out of line 2; to see them, cut the line with run_command" in cut["content"]
    assert len(cut["content"]) < bounds.MAX_TEXT + 200
    last = structured(await client.call_tool("read_file", {"path": "a", "start_line": 3}))
    assert (last["content"], last["next_line"], last["truncated"]) == ("after\n", None, False)


async def test_binary_content_goes_both_ways_as_base64(client: Client) -> None:
    data = base64.b64encode(bytes(range(256))).decode()
    arguments = {"path": "data.bin", "content": data, "encoding": "base64"}
    assert structured(await client.call_tool("write_file", arguments))["size"] == 256
    answer = structured(await client.call_tool("read_file", {"path": "data.bin"}))
    assert (answer["encoding"], answer["content"]) == ("base64", data)


@pytest.mark.parametrize("content", ["%%%", "YQ", "ä" * 4], ids=["alphabet", "padding", "not ASCII"])
async def test_what_is_not_base64_is_refused_with_the_fix(
    client: Client, fake: FakeBackend, content: str
) -> None:
    arguments = {"path": "a", "content": content, "encoding": "base64"}
    text = failure(await client.call_tool("write_file", arguments))
    assert "[SBX_E1000] content is not base64\nFix: encode it" in text
    assert not fake.calls


async def test_a_picture_is_attached(client: Client) -> None:
    data = base64.b64encode(PNG).decode()
    await client.call_tool("write_file", {"path": "plot.dat", "content": data, "encoding": "base64"})
    result = await client.call_tool("read_file", {"path": "plot.dat"})
    answer = structured(result)
    assert (answer["encoding"], answer["mime_type"], answer["content"]) == ("image", "image/png", "")
    image = result.content[1]
    assert isinstance(image, ImageContent)
    assert (image.data, image.mime_type) == (data, "image/png")


async def test_a_name_does_not_make_a_picture(client: Client) -> None:
    data = base64.b64encode(b"\0no picture").decode()
    await client.call_tool("write_file", {"path": "a.png", "content": data, "encoding": "base64"})
    result = await client.call_tool("read_file", {"path": "a.png"})
    assert structured(result)["mime_type"] == "application/octet-stream"
    assert len(result.content) == 1


async def test_a_large_binary_file_is_refused_with_the_fix(client: Client) -> None:
    data = base64.b64encode(bytes(bounds.MAX_INLINE_BYTES + 1)).decode()
    await client.call_tool("write_file", {"path": "a.bin", "content": data, "encoding": "base64"})
    assert "Fix: " in failure(await client.call_tool("read_file", {"path": "a.bin"}))


@pytest.mark.parametrize("path", ["huge", "link", "chain"])
async def test_a_huge_file_is_refused_behind_links_too(client: Client, path: str) -> None:
    command = f"head -c {bounds.MAX_FILE_BYTES + 1} /dev/zero > huge; ln -s huge link; ln -s link chain"
    structured(await client.call_tool("run_command", {"command": command}))
    text = failure(await client.call_tool("read_file", {"path": path}))
    assert f"is larger than {bounds.MAX_FILE_BYTES} bytes\nFix: find, cut or summarize" in text


async def test_a_file_is_read_through_a_link(client: Client) -> None:
    await client.call_tool("run_command", {"command": "echo text > a; ln -s a link"})
    assert structured(await client.call_tool("read_file", {"path": "link"}))["content"] == "text\n"


async def test_a_directory_is_listed_up_to_a_bound(client: Client) -> None:
    await client.call_tool("run_command", {"command": f"touch $(seq 1 {bounds.MAX_ENTRIES + 5})"})
    answer = structured(await client.call_tool("list_files"))
    assert len(answer["entries"]) == bounds.MAX_ENTRIES
    assert answer["total"] == bounds.MAX_ENTRIES + 5
    assert answer["entries"][0] == {"name": "1", "is_dir": False, "size": 0}


async def test_a_listing_that_takes_too_long_is_an_error_with_the_fix(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.call_tool("run_command", {"command": "touch a"})
    monkeypatch.setattr("sandboxio.mcp.tools.LISTING_SECONDS", 0.0)
    text = failure(await client.call_tool("list_files"))
    assert "[SBX_E1700] listing '.' took more than 0 s" in text
    assert "Fix: count or match them with run_command" in text


async def test_sandbox_info_tells_the_limits(client: Client, fake: FakeBackend) -> None:
    answer = structured(await client.call_tool("sandbox_info"))
    assert (answer["backend"], answer["isolation"], answer["egress"]) == ("fake", "CONTAINER", "deny")
    assert answer["sandbox_id"] == fake.sandboxes[0].id
    assert "RUN_CODE" in answer["capabilities"]
    assert 0 < answer["remaining_seconds"] <= answer["lifetime_seconds"] == 300


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_long_output_is_cut_in_the_middle_and_says_so(
    client: Client, fake: FakeBackend, stream: str
) -> None:
    text = "begin" + "x" * 100_000 + "end"
    fake.on_run("noisy", returns=ExecResult(0, **{"stdout": "", "stderr": "", stream: text}))
    result = await client.call_tool("run_command", {"command": "noisy"})
    answer = structured(result)
    assert answer["truncated"]
    assert answer[stream].startswith("begin")
    assert answer[stream].endswith("end")
    assert f"{len(text) - bounds.MAX_TEXT} characters left out" in answer[stream]
    assert len(answer[stream]) < bounds.MAX_TEXT + 200


async def test_pictures_of_a_cell_are_attached_and_its_texts_are_told(
    client: Client, fake: FakeBackend
) -> None:
    outputs = (RichOutput("image/png", PNG), RichOutput("text/plain", "<Figure>"))
    fake.on_run_code("plot()", returns=ExecResult(0, "", "", results=outputs))
    result = await client.call_tool("run_python", {"code": "plot()"})
    shown = {output["mime_type"]: output["text"] for output in structured(result)["outputs"]}
    assert shown == {"image/png": "attached as picture 1", "text/plain": "<Figure>"}
    assert [type(content) for content in result.content] == [TextContent, ImageContent]


def test_outputs_of_a_cell_are_bounded() -> None:
    large = RichOutput("image/png", PNG + bytes(bounds.MAX_IMAGE_BYTES))
    many = (large, *[RichOutput("image/png", PNG)] * 10, *[RichOutput("text/html", "y" * 50_000)] * 30)
    result = run_outcome(ExecResult(0, "", "", results=many), "")
    outputs = structured(result)["outputs"]
    assert "bytes left out" in outputs[0]["text"]
    assert len(outputs) == bounds.MAX_OUTPUTS + 1
    assert "further outputs left out" in outputs[-1]["text"]
    assert all(len(output["text"]) < bounds.MAX_OUTPUT_TEXT + 200 for output in outputs)
    assert sum(isinstance(content, ImageContent) for content in result.content) == bounds.MAX_IMAGES


async def test_an_error_tells_code_fix_and_page(client: Client) -> None:
    text = failure(await client.call_tool("read_file", {"path": "missing"}))
    assert "[SBX_E1701]" in text
    assert "Fix: look at what exists with list_files" in text
    assert "Docs: https://docs.sandboxio.dev/errors/SBX_E1701" in text


async def test_a_timeout_tells_what_there_was_until_then(client: Client) -> None:
    text = failure(
        await client.call_tool("run_command", {"command": "echo early; sleep 9", "timeout_seconds": 1})
    )
    assert "[SBX_E1302]" in text
    assert "timeout_seconds" in text
    assert "stdout until then:\nearly\n" in text


async def test_a_run_that_would_outlive_its_sandbox_is_a_timeout_that_says_so(
    client: Client, fake: FakeBackend
) -> None:
    arguments = {"command": "echo early; sleep 4000", "timeout_seconds": 5000}
    text = failure(await client.call_tool("run_command", arguments))
    assert "[SBX_E1302]" in text
    assert "5000 s given, because the lifetime of its sandbox had only" in text
    assert "timeout_seconds" not in text
    assert "stdout until then:\nearly\n" in text
    assert fake.sandboxes


NAMELESS = "a\udcff"  # what a file is called whose name is b"a\xff"


async def test_a_name_that_is_no_utf_8_can_be_sent(client: Client, fake: FakeBackend) -> None:
    await client.call_tool("sandbox_info")
    fake.sandboxes[0].tree.make_folder(f"/work/{NAMELESS}")
    result = await client.call_tool("list_files")
    assert [entry["name"] for entry in structured(result)["entries"]] == ["a\ufffd"]
    assert result.model_dump_json()


async def test_an_error_about_such_a_name_can_be_sent(client: Client, fake: FakeBackend) -> None:
    partial = ExecResult(-1, NAMELESS, NAMELESS)
    fake.on_run("odd", raises=ExecutionTimeout(NAMELESS, partial=partial))
    text = failure(await client.call_tool("run_command", {"command": "odd"}))
    assert "stdout until then:\na\ufffd\n" in text
    assert text.encode()


async def test_credentials_of_the_host_are_redacted_quoted_and_escaped_too() -> None:
    redaction = Redaction(['it\'s\na "key"', None, ""])
    for shown in ('it\'s\na "key"', repr('it\'s\na "key"'), json.dumps('it\'s\na "key"')):
        assert "key" not in redaction.text(f"refused: {shown}")
    assert redaction.text("") == ""


async def test_credentials_of_the_host_are_redacted(client: Client, fake: FakeBackend) -> None:
    error = ExecutionTimeout("refused: a-credential-of-the-host", partial=ExecResult(-1, "", ""))
    fake.on_run("leak", raises=error)
    text = failure(await client.call_tool("run_command", {"command": "leak"}))
    assert "a-credential-of-the-host" not in text
    assert "[redacted]" in text


async def test_an_unexpected_failure_is_masked(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("internal")

    monkeypatch.setattr("sandboxio.mcp.tools.run_outcome", fail)
    text = failure(await client.call_tool("run_command", {"command": "true"}))
    assert "internal" not in text
    assert "internal" in caplog.text


@pytest.mark.parametrize("seconds", [0, -1, 10**9, "soon"])
async def test_a_nonsensical_timeout_reaches_no_sandbox(
    client: Client, fake: FakeBackend, seconds: object
) -> None:
    failure(await client.call_tool("run_python", {"code": "1", "timeout_seconds": seconds}))
    assert not fake.calls


async def test_no_tool_takes_anything_that_would_change_the_configuration(client: Client) -> None:
    fixed = {
        "backend",
        "image",
        "template",
        "network",
        "egress",
        "allow",
        "env",
        "secrets",
        "lifetime",
        "metadata",
    }
    for tool in (await client.list_tools()).tools:
        assert not fixed & set(tool.input_schema["properties"]), tool.name


async def test_the_policy_of_the_start_is_that_of_every_sandbox(client: Client, fake: FakeBackend) -> None:
    await client.call_tool("run_python", {"code": "1"})
    assert {call.network for call in fake.calls} == {NetworkPolicy()}
