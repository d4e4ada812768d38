"""The connection to the engine: every transport, and engines that misbehave."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import anyio
import pytest
from docker_suite.fake_engine import fake_engine

from sandboxio.errors import ConnectError
from sandboxio_docker import DockerBackend, DockerConfig
from sandboxio_docker.address import Address, resolve_address
from sandboxio_docker.engine import ANSWER_LIMIT, Engine
from sandboxio_docker.errors import EngineError, EngineTimeout, EngineUnreachable
from sandboxio_docker.npipe import bridge
from sandboxio_docker.stream import SocketStream, send_all
from sandboxio_docker.transport import Transport


async def test_an_engine_that_hangs_is_an_error_and_no_hang(tmp_path: Path) -> None:
    with fake_engine(tmp_path / "s", lambda _: None) as address:
        with pytest.raises(EngineTimeout, match="GET"):
            await Engine(Transport(address)).request("GET", "/info", timeout=0.2)


async def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            for _ in range(ANSWER_LIMIT // 65536 + 10):
                connection.sendall(bytes(65536))
        except OSError:
            pass

    with fake_engine(tmp_path / "s", flood) as address:
        with pytest.raises(EngineError, match="larger than"):
            await Engine(Transport(address)).get("/info")


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-nonsense\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
async def test_nonsense_and_broken_connections_are_errors_of_ours(tmp_path: Path, answer: bytes) -> None:
    def reply(connection: socket.socket) -> None:
        connection.sendall(answer)
        connection.close()

    with fake_engine(tmp_path / "s", reply) as address:
        with pytest.raises(ConnectError):
            await DockerBackend(DockerConfig(base_url=address.url)).verify_isolation()


async def test_the_engines_own_words_are_kept(tmp_path: Path) -> None:
    body = json.dumps({"message": "the disk is full"}).encode()

    def reply(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 507 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with fake_engine(tmp_path / "s", reply) as address:
        with pytest.raises(EngineError, match="the disk is full") as caught:
            await Engine(Transport(address)).get("/info")
    assert caught.value.status == 507


@pytest.mark.parametrize(
    "address",
    [Address("unix", "/nowhere/docker.sock"), Address("tcp", "127.0.0.1", 1)],
    ids=lambda a: a.scheme,
)
async def test_an_engine_that_is_not_there_is_unreachable(address: Address) -> None:
    with pytest.raises(EngineUnreachable):
        await Transport(address).connect()


async def test_a_cancelled_send_reports_what_it_took() -> None:
    ours, theirs = socket.socketpair()
    stream = SocketStream(ours)
    data = memoryview(bytes(range(256)) * 40_000)
    sent = 0
    while sent < len(data):
        with anyio.move_on_after(0.05) as scope:
            sent += await stream.send(data[sent:])
        if scope.cancelled_caught:
            break
    theirs.setblocking(False)
    received = b""
    while True:
        try:
            received += theirs.recv(1 << 20)
        except BlockingIOError:
            break
    assert received == bytes(data[:sent])
    stream.close()
    theirs.close()


async def test_a_blocking_pipe_serves_as_a_stream() -> None:
    near, far = socket.socketpair()
    stream = bridge(near)
    await send_all(stream, b"ping")
    assert await anyio.to_thread.run_sync(far.recv, 10) == b"ping"
    far.sendall(b"pong")
    assert await stream.receive() == b"pong"
    far.close()
    assert await stream.receive() == b""
    stream.close()


@pytest.mark.docker
async def test_ssh_reaches_the_engine_through_dial_stdio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program named ssh stands in for ssh: it notes its arguments and joins its streams to the engine."""
    program = tmp_path / "ssh"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, socket, sys, threading\n"
        f"open({str(tmp_path / 'arguments')!r}, 'w').write(' '.join(sys.argv[1:]))\n"
        f"engine = socket.socket(socket.AF_UNIX); engine.connect({resolve_address().target!r})\n"
        "def pump():\n"
        "    while data := os.read(0, 65536): engine.sendall(data)\n"
        "    engine.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=pump, daemon=True).start()\n"
        "while data := engine.recv(65536): os.write(1, data)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    transport = Transport(Address("ssh", "build.example", 2222, user="me"))
    assert (await Engine(transport).get("/version"))["ApiVersion"]
    arguments = (tmp_path / "arguments").read_text()
    assert arguments == "-o BatchMode=yes -p 2222 -l me -- build.example docker system dial-stdio"


@pytest.fixture(params=["unix", "tcp", "tls"])
def transport_config(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> DockerConfig:
    """The same engine by each transport, where the environment says at which address it has it."""
    if request.param == "unix":
        return DockerConfig()
    variable = {"tcp": "SBX_TEST_DOCKER_TCP", "tls": "SBX_TEST_DOCKER_TLS"}[request.param]
    host = os.environ.get(variable)
    if not host:
        pytest.skip(f"{variable} does not name an address of the engine")
    if request.param == "tls":
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        monkeypatch.setenv("DOCKER_CERT_PATH", os.environ["SBX_TEST_DOCKER_TLS_DIR"])
    return DockerConfig(base_url=host)


@pytest.mark.docker
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_every_transport_carries_everything(transport_config: DockerConfig, anyio_backend: str) -> None:
    backend = DockerBackend(transport_config)
    arguments = {"template": None, "resources": None, "network": None, "env": None, "secrets": None}
    async with await backend.create(**arguments, timeout=60, metadata=None) as sandbox:  # type: ignore[arg-type]
        data = os.urandom(3_000_000)
        assert (await sandbox.run(["wc", "-c"], stdin=data)).stdout.strip() == str(len(data))
        await sandbox.files.write("data", data)
        assert await sandbox.files.read("data") == data
        result = await sandbox.run("echo out; echo err >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")


@pytest.mark.docker
def test_a_sandbox_works_from_several_event_loops() -> None:
    backend = DockerBackend()
    arguments = {"template": None, "resources": None, "network": None, "env": None, "secrets": None}

    async def create():  # type: ignore[no-untyped-def]
        return await backend.create(**arguments, timeout=60, metadata=None)  # type: ignore[arg-type]

    sandbox = anyio.run(create)

    async def use() -> str:
        return (await sandbox.run(["echo", "hi"])).stdout

    assert anyio.run(use) == "hi\n"
    assert anyio.run(use, backend="trio") == "hi\n"
    anyio.run(sandbox.kill)
