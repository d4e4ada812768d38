"""The streamable-http transport: who may ask, and whose sandbox they get."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp

from sandboxio import ConfigurationError, NetworkPolicy
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.gates import BearerGate
from sandboxio.mcp.holder import Profile
from sandboxio.mcp.http import application, check_exposure
from sandboxio.mcp.options import Options
from sandboxio.mcp.server import server_for_sessions
from sandboxio.testing.fake import FakeBackend

PLANTED = Path(__file__).parent / "planted" / "planted_server.py"
TOKEN = "0123456789abcdef-token"
BOUND = 60.0
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


class Site:
    """An application that runs in this process, and the fake behind it."""

    def __init__(self, app: ASGIApp, fake: FakeBackend) -> None:
        self.app = app
        self.fake = fake

    def http(self, **headers: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.app)
        return httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers=headers, timeout=BOUND
        )

    async def post(self, **headers: str) -> httpx2.Response:
        async with self.http(**HEADERS) as client:
            return await client.post("/mcp", json=INITIALIZE, headers=headers)

    @asynccontextmanager
    async def client(self, mode: str = "auto", **headers: str) -> AsyncGenerator[Client, None]:
        async with self.http(**headers) as http:
            transport = streamable_http_client("http://127.0.0.1:8000/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client


@asynccontextmanager
async def site(fake: FakeBackend, **options: Any) -> AsyncGenerator[Site, None]:
    server = server_for_sessions(Profile(fake, NetworkPolicy(), 300), Redaction([]))
    app = application(server, Options(transport="streamable-http", **options))
    with anyio.fail_after(BOUND):
        async with server.session_manager.run():
            yield Site(app, fake)


async def test_a_client_of_this_machine_is_served(fake: FakeBackend) -> None:
    async with site(fake) as here:
        assert (await here.post(host="localhost:8000")).status_code == 200
        assert (await here.post(origin="http://localhost:3000")).status_code == 200


@pytest.mark.parametrize(
    "host", ["LOCALHOST", "localhost:1", "[::1]:65535", "MCP.example.org:8000", "mcp.Example.org"]
)
async def test_names_are_the_same_in_either_case(fake: FakeBackend, host: str) -> None:
    async with site(fake, allowed_hosts=("Mcp.Example.org",)) as here:
        assert (await here.post(host=host, origin="HTTP://LOCALHOST:3000")).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example:8000",
        "localhost.evil",
        "localhost:evil",
        "localhost:",
        "localhost:1@evil.example",
        "localhost:8000:8000",
    ],
)
async def test_a_foreign_host_header_is_421(fake: FakeBackend, host: str) -> None:
    async with site(fake) as here:
        assert (await here.post(host=host)).status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost:x.evil.example",
        "http://localhost:1@evil.example",
        "https://localhost",
        "localhost",
    ],
)
async def test_a_foreign_origin_is_403(fake: FakeBackend, origin: str) -> None:
    async with site(fake) as here:
        assert (await here.post(origin=origin)).status_code == 403


async def test_names_and_origins_can_be_allowed(fake: FakeBackend) -> None:
    names = {"allowed_hosts": ("mcp.example",), "allowed_origins": ("https://app.example",)}
    async with site(fake, **names) as here:
        assert (await here.post(host="mcp.example")).status_code == 200
        assert (await here.post(host="mcp.example:443", origin="https://app.example")).status_code == 200
        assert (await here.post(host="other.example")).status_code == 421
        assert (await here.post(host="mcp.example", origin="https://other.example")).status_code == 403
        assert (await here.post(host="mcp.example", origin="https://app.example:8443")).status_code == 403


async def test_a_name_with_a_port_is_allowed_with_this_port_alone(fake: FakeBackend) -> None:
    async with site(fake, allowed_hosts=("mcp.example:8443",)) as here:
        assert (await here.post(host="mcp.example:8443")).status_code == 200
        assert (await here.post(host="mcp.example:443")).status_code == 421
        assert (await here.post(host="mcp.example")).status_code == 421


async def test_one_of_several_names_that_is_foreign_is_enough_for_421(fake: FakeBackend) -> None:
    async with site(fake) as here, here.http(**HEADERS) as client:
        hosts = [("host", "localhost"), ("host", "evil.example")]
        assert (await client.post("/mcp", json=INITIALIZE, headers=hosts)).status_code == 421


async def test_beyond_this_machine_headers_are_checked_as_well(fake: FakeBackend) -> None:
    async with site(fake, host="10.1.2.3", token=TOKEN) as here:
        authorization = f"Bearer {TOKEN}"
        assert (await here.post(authorization=authorization, host="10.1.2.3:8000")).status_code == 200
        assert (await here.post(authorization=authorization, host="evil.example")).status_code == 421
        rebound = await here.post(
            authorization=authorization, host="10.1.2.3:8000", origin="http://evil.example"
        )
        assert rebound.status_code == 403


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer ä",
    ],
)
async def test_a_missing_or_wrong_token_is_401(fake: FakeBackend, authorization: str | None) -> None:
    async with site(fake, token=TOKEN) as here:
        headers = (
            {}
            if authorization is None
            else {"authorization": authorization.encode("latin-1").decode("latin-1")}
        )
        async with here.http(**HEADERS) as client:
            raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            for method in ("POST", "GET", "DELETE"):
                response = await client.request(method, "/mcp", json=INITIALIZE, headers=raw)
                assert response.status_code == 401
                assert response.headers["www-authenticate"] == "Bearer"


async def test_the_right_token_is_served(fake: FakeBackend) -> None:
    async with site(fake, token=TOKEN) as here:
        async with here.client(authorization=f"bearer {TOKEN}") as client:
            assert not (await client.call_tool("sandbox_info")).is_error


async def test_the_gate_does_not_read_the_body_of_a_stranger() -> None:
    sent: list[str] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def behind(*_: Any) -> None:
        raise AssertionError("it was let through")

    await BearerGate(behind, TOKEN)({"type": "http", "headers": []}, receive, send)
    assert sent == ["http.response.start", "http.response.body"]


async def test_two_sessions_have_two_sandboxes_that_end_with_them(fake: FakeBackend) -> None:
    async with site(fake) as here:
        async with here.client() as first:
            async with here.client() as second:
                await first.call_tool("write_file", {"path": "secret.txt", "content": "of the first"})
                listing = await second.call_tool("list_files")
                assert listing.structured_content is not None
                assert listing.structured_content["entries"] == []
                assert len(fake.sandboxes) == 2
            await gone(fake, 1)
            result = await first.call_tool("read_file", {"path": "secret.txt"})
            assert result.structured_content is not None
            assert result.structured_content["content"] == "of the first"
        await gone(fake, 0)


async def gone(fake: FakeBackend, left: int) -> None:
    with anyio.fail_after(10):
        while len(fake.sandboxes) > left:
            await anyio.sleep(0.01)


async def test_a_session_that_does_not_exist_has_no_sandbox(fake: FakeBackend) -> None:
    async with site(fake) as here:
        async with here.client() as client:
            await client.call_tool("sandbox_info")
            assert (await here.post(**{"mcp-session-id": "0" * 32})).status_code == 404
            assert len(fake.sandboxes) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_of_versions_without_sessions_fall_back_to_one_that_has_them(
    fake: FakeBackend, mode: str
) -> None:
    async with site(fake) as here, here.client(mode) as client:
        await client.call_tool("run_command", {"command": "touch kept"})
        result = await client.call_tool("run_command", {"command": "ls"})
        assert result.structured_content is not None
        assert result.structured_content["stdout"] == "kept\n"
    assert [call.operation for call in fake.calls].count("create") == 1


async def test_sessions_are_bounded(fake: FakeBackend) -> None:
    async with site(fake, max_sessions=1) as here:
        async with here.client() as client:
            await client.call_tool("sandbox_info")
            assert (await here.post()).status_code == 503
            assert len(fake.sandboxes) == 1


async def test_a_session_that_ends_during_a_call_ends_its_processes(fake: FakeBackend) -> None:
    async with site(fake) as here:
        with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True, allow_unwrapped=True):
            async with here.client() as client, anyio.create_task_group() as group:
                await client.call_tool("sandbox_info")
                (machine,) = fake.sandboxes
                group.start_soon(client.call_tool, "run_command", {"command": "cat /dev/zero"})
                with anyio.fail_after(10):
                    while not machine.kernel.processes:
                        await anyio.sleep(0.01)
                raise RuntimeError("the client is in a hurry")
        await gone(fake, 0)


async def test_everything_ends_with_the_server(fake: FakeBackend) -> None:
    async with site(fake) as here:
        async with here.http(**HEADERS) as client:
            response = await client.post("/mcp", json=INITIALIZE)
            session = {"mcp-session-id": response.headers["mcp-session-id"]}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "sandbox_info"}}
            await client.post("/mcp", json=call, headers=session)
        assert len(fake.sandboxes) == 1
    assert not fake.sandboxes


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "mcp.example", ""])
def test_beyond_this_machine_a_token_is_needed(host: str) -> None:
    with pytest.raises(ConfigurationError, match="no token"):
        check_exposure(Options(host=host, allowed_hosts=("mcp.example",)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_this_machine_none_is(host: str) -> None:
    check_exposure(Options(host=host))


@pytest.mark.parametrize(
    "token", ["guess-me", "with a space in the middle", "with-a-line\nend-in-it", "ä" * 20]
)
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(ConfigurationError, match="SBX_MCP_TOKEN") as raised:
        check_exposure(Options(token=token))
    assert token not in str(raised.value)


def test_on_every_address_a_name_is_needed() -> None:
    with pytest.raises(ConfigurationError, match="no name"):
        check_exposure(Options(host="0.0.0.0", token=TOKEN))
    check_exposure(Options(host="0.0.0.0", token=TOKEN, allowed_hosts=("mcp.example",)))


def test_options_do_not_show_the_token() -> None:
    assert TOKEN not in repr(Options(token=TOKEN))


@contextmanager
def process(
    record: Path, *, below: Sequence[str] = (), **environment: str
) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    command = [*below, sys.executable, str(PLANTED), "--transport", "streamable-http", "--port", "0"]
    environment = {**os.environ, "PLANTED_RECORD": str(record), **environment}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            assert server.stderr is not None
            address = re.search(r"http://\S+", server.stderr.readline())
            assert address is not None
            yield server, address[0]
        finally:
            if server.poll() is None:
                server.kill()


@pytest.mark.parametrize(
    "end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["SIGINT", "SIGTERM", "SIGHUP"]
)
async def test_a_server_process_ends_all_sandboxes_at_a_signal_also_during_a_call(
    tmp_path: Path, end: signal.Signals
) -> None:
    record = tmp_path / "record"
    headers = {**HEADERS, "authorization": f"Bearer {TOKEN}"}
    with anyio.fail_after(BOUND), process(record, SBX_MCP_TOKEN=TOKEN) as (server, address):
        async with httpx2.AsyncClient(headers=headers, timeout=BOUND) as http:
            hello = await http.post(address, json=INITIALIZE)
            session = {"mcp-session-id": hello.headers["mcp-session-id"]}

            async def call(number: int, name: str, **arguments: str) -> str:
                params = {"name": name, "arguments": arguments}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                return (await http.post(address, json=message, headers=session)).text

            async def endless() -> None:
                with suppress(httpx2.TransportError):
                    await call(3, "run_command", command="cat /dev/zero")

            assert '"stdout":"42\\n"' in await call(2, "run_python", code="print(6 * 7)")
            async with anyio.create_task_group() as group:
                group.start_soon(endless)
                await call(4, "sandbox_info")
                server.send_signal(end)
                _, errors = await anyio.to_thread.run_sync(server.communicate)
                assert errors == ""
        assert server.returncode == 128 + end
        assert record.read_text(encoding="utf-8") == "made 1, left 0, token False"


async def test_connections_that_send_nothing_keep_nobody_out(tmp_path: Path) -> None:
    record = tmp_path / "record"
    headers = {**HEADERS, "authorization": f"Bearer {TOKEN}"}
    few = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
    with anyio.fail_after(BOUND), process(record, below=few, SBX_MCP_TOKEN=TOKEN) as (server, address):
        port = urlsplit(address).port
        assert port is not None
        async with AsyncExitStack() as flood:
            for _ in range(300):
                await flood.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            async with httpx2.AsyncClient(headers=headers, timeout=BOUND) as http:
                assert (await http.post(address, json=INITIALIZE)).status_code == 200
        server.terminate()
        _, said = await anyio.to_thread.run_sync(server.communicate)
    assert (server.returncode, "Traceback" in said) == (143, False)


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "sandboxio.mcp",
                "--backend",
                "fake://",
                "--transport",
                "streamable-http",
                "--port",
                port,
            ],
            capture_output=True,
            text=True,
            timeout=BOUND,
        )
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
