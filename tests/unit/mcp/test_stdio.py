"""The server as a client starts it: a process that is talked to over its standard input and output."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters

PLANTED = Path(__file__).parent / "planted" / "planted_server.py"
SERVER = [sys.executable, "-m", "sandboxio.mcp", "--backend", "fake://"]
BOUND = 60.0
HELLO: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


class Talk:
    """A running server; every line that it ever writes to its standard output is kept."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process = process
        self.lines: list[bytes] = []
        self._output = BufferedByteReceiveStream(process.stdout)

    async def say(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            await self.process.stdin.send(lines(message))

    async def answer(self, number: int) -> dict[str, Any]:
        return dict((await self._message(number))["result"])

    async def refusal(self, number: int) -> dict[str, Any]:
        return dict((await self._message(number))["error"])

    async def _message(self, number: int) -> dict[str, Any]:
        while True:
            line = await self._output.receive_until(b"\n", 2**24)
            self.lines.append(line)
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == number:
                return message

    async def hang_up(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def ended(self) -> int:
        rest = b""
        while True:
            try:
                rest += await self._output.receive(65536)
            except anyio.EndOfStream:
                break
        self.lines += rest.splitlines()
        return await self.process.wait()


@asynccontextmanager
async def talk(record: Path, *below: str) -> AsyncGenerator[Talk, None]:
    environment = {**os.environ, "PLANTED_RECORD": str(record), "SBX_MCP_TOKEN": "not for children"}
    command = [*below, sys.executable, str(PLANTED)]
    with anyio.fail_after(BOUND):
        async with await anyio.open_process(command, env=environment, stderr=subprocess.PIPE) as process:
            try:
                yield Talk(process)
            finally:
                if process.returncode is None:
                    process.kill()


async def test_standard_output_is_the_protocol_alone_and_the_end_of_input_ends_everything(
    tmp_path: Path,
) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO, call(2, "run_python", code="print('from the sandbox')"))
        assert (await server.answer(2))["structuredContent"]["stdout"] == "from the sandbox\n"
        await server.say(call(3, "run_command", command="echo loud; echo louder >&2"))
        await server.answer(3)
        await server.hang_up()
        assert await server.ended() == 0
        errors = server.process.stderr
        assert errors is not None
        said = b"".join([chunk async for chunk in errors]).decode()
    assert len(server.lines) == 3
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.lines)
    for noise in ("imported", "creating", "written to descriptor 1", "a child", "exiting"):
        assert noise in said
    assert (tmp_path / "record").read_text(encoding="utf-8") == "made 1, left 0, token False"


@pytest.mark.parametrize(
    ("end", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
async def test_a_signal_ends_a_silent_server_and_its_sandbox(
    tmp_path: Path, end: signal.Signals, code: int
) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO, call(2, "sandbox_info"))
        await server.answer(2)
        server.process.send_signal(end)
        assert await server.ended() == code
    assert (tmp_path / "record").read_text(encoding="utf-8") == "made 1, left 0, token False"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
async def test_further_signals_change_nothing_up_to_the_end_of_the_process(
    tmp_path: Path, end: signal.Signals
) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO, call(2, "sandbox_info"))
        await server.answer(2)
        async with anyio.create_task_group() as group:

            async def insist() -> None:
                with suppress(ProcessLookupError):
                    while True:
                        os.kill(server.process.pid, end)  # `send_signal` could reap it before the loop does
                        await anyio.sleep(0.002)

            group.start_soon(insist)
            assert await server.ended() == 128 + end
            group.cancel_scope.cancel()
    assert (tmp_path / "record").read_text(encoding="utf-8") == "made 1, left 0, token False"


async def test_a_hangup_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    async with talk(tmp_path / "record", "sh", "-c", "trap '' HUP; exec \"$@\"", "sh") as server:
        await server.say(*HELLO, call(2, "sandbox_info"))
        await server.answer(2)
        server.process.send_signal(signal.SIGHUP)
        await server.say(call(3, "sandbox_info"))
        await server.answer(3)
        await server.hang_up()
        assert await server.ended() == 0


@pytest.mark.parametrize("how", ["hang up", "interrupt"])
async def test_the_end_comes_during_a_call_too(tmp_path: Path, how: str) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO, call(2, "sandbox_info"))
        await server.answer(2)
        await server.say(call(3, "run_command", command="cat /dev/zero"), call(4, "sandbox_info"))
        await server.answer(4)
        if how == "interrupt":
            server.process.send_signal(signal.SIGINT)
        else:
            await server.hang_up()
        assert await server.ended() == (130 if how == "interrupt" else 0)
    assert (tmp_path / "record").read_text(encoding="utf-8") == "made 1, left 0, token False"


async def test_a_signal_ends_a_server_whose_client_does_not_read(tmp_path: Path) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO, call(2, "sandbox_info"))
        await server.answer(2)
        for number in range(3, 30):
            await server.say(call(number, "run_python", code=f"print('x' * {20_000})"))
        await anyio.sleep(
            0.5
        )  # it is enough that the pipe is full by now; less makes the test weaker, not red
        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):
            assert await server.process.wait() == 143
    assert "left 0" in (tmp_path / "record").read_text(encoding="utf-8")


def test_a_client_that_closes_what_it_reads_from_has_left() -> None:
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(lines(*HELLO))
        assert server.stdout.read(1)
        server.stdout.close()
        server.stdin.write(lines({"id": 2, "method": "ping"}))
        assert server.wait(BOUND) == 0
        assert server.stderr.read() == b""


def test_a_client_that_resets_its_connection_has_left() -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(
            SERVER, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE
        ) as server,
    ):
        theirs.close()
        ours.settimeout(BOUND)
        ours.sendall(lines(*HELLO))
        assert ours.recv(1)
        ours.close()  # with the rest of the answer unread, so the other end meets a reset
        said = server.communicate(timeout=BOUND)[1].decode()
    assert (server.returncode, said) == (0, "")


async def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_served(tmp_path: Path) -> None:
    async with talk(tmp_path / "record") as server:
        await server.say(*HELLO)
        await server.answer(1)
        assert server.process.stdin is not None
        await server.process.stdin.send(
            b'{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": "\\ud800"}\n\n'
        )
        assert (await server.refusal(2))["code"] == -32700
        await server.say({"id": 3, "method": "ping"})
        assert await server.answer(3) == {}
        await server.hang_up()
        assert await server.ended() == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk_works_with_it(mode: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "sandboxio.mcp", "--backend", "fake://"]
    )
    with anyio.fail_after(BOUND):
        async with Client(parameters, mode=mode) as client:
            await client.call_tool("write_file", {"path": "a.txt", "content": "kept"})
            result = await client.call_tool("read_file", {"path": "a.txt"})
    assert result.structured_content is not None
    assert result.structured_content["content"] == "kept"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandboxio.mcp", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
        env={**os.environ, **environment},
        check=False,
    )


def test_an_input_that_is_empty_from_the_start_ends_it() -> None:
    done = run("--backend", "fake://")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--backend", "acme://"], 2, "[SBX_E1001]"),
        (["--backend", "fake://?timeout=5"], 2, "timeout"),
        (["--egress", "allow", "--allow", "example.org"], 2, "[SBX_E1000]"),
        (["--timeout", "0"], 2, "--timeout: '0' is no positive number"),
        (["--timeout", "soon"], 2, "--timeout: 'soon' is no positive number"),
        (["--timeout", "1e300"], 2, "[SBX_E1000]"),
        (["--port", "http"], 2, "--port: 'http' is no port"),
        (["--port", "65536"], 2, "--port: '65536' is no port"),
        (["--max-sessions", "many"], 2, "--max-sessions: 'many' is no positive whole number"),
        (["--backend", "docker://", "--allow", "example.org"], 2, "does not support --allow"),
        (["--backend", "docker://", "--egress", "learn"], 2, "does not support --egress learn"),
        (["--backend", "fake://", "--transport", "streamable-http", "--host", "a..b"], 2, "[SBX_E1000]"),
        (["--token", "secret"], 2, "unrecognized"),
        (["--backend", "fake://", "--transport", "streamable-http", "--host", "0.0.0.0"], 2, "SBX_MCP_TOKEN"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_start_is_told_on_standard_error(arguments: list[str], code: int, told: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_at_a_terminal_it_says_what_it_waits_for() -> None:
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        SERVER, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        os.close(terminal)
        assert server.stderr is not None
        assert "waits for an MCP client on standard input" in server.stderr.readline()
        server.terminate()
        assert server.wait(BOUND) == 143
    os.close(ours)


def test_a_process_without_standard_output_says_so() -> None:
    command = f"exec {sys.executable} -m sandboxio.mcp --backend fake:// >&-"
    done = subprocess.run(
        ["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=BOUND, check=False
    )
    assert done.returncode == 1
    assert "standard input and output cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_goes_to_standard_output() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "SBX_MCP_TOKEN" in done.stdout


WITHOUT_SDK = """
import sys

sys.modules["mcp"] = None
from sandboxio.mcp import main

sys.exit(main(["--backend", "fake://"]))
"""
IMPORTS = """
import sys

import sandboxio, sandboxio.mcp, sandboxio.mcp.options

print(sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "pydantic", "starlette", "uvicorn"}))
"""


def test_without_the_sdk_the_install_command_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SDK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "uv sync --inexact --extra mcp" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_package_does_not_import_the_sdk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=BOUND, check=True
    )
    assert done.stdout == "[]\n"
