"""An engine that does not answer as one is a `ConnectError` with a fix, wherever that shows."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from docker_suite.fake_engine import fake_engine

from sandboxio.errors import ConnectError
from sandboxio_docker import DockerBackend, DockerConfig
from sandboxio_docker.answer import Answer, answered_object
from sandboxio_docker.container import Container
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import UnexpectedAnswer
from sandboxio_docker.managed import describe
from sandboxio_docker.transport import Transport

NOTHING: dict[str, Any] = dict.fromkeys(("template", "resources", "network", "env", "secrets", "metadata"))
DESCRIBED = {
    "Id": "1f",
    "Name": "/sandboxio-0123456789abcdef",
    "State": {"Running": True, "StartedAt": "2026-01-01T00:00:00Z"},
    "Config": {
        "Labels": {
            "sandboxio.managed": "true",
            "sandboxio.creation": "0123456789abcdef" * 2,
            "sandboxio.lifetime": "60",
        },
        "User": "1:1",
        "Image": "i",
    },
    "HostConfig": {"Runtime": "runc"},
}

BODIES = {
    "null": b"null",
    "a list": b"[]",
    "a list of lists": b"[[], null]",
    "an empty object": b"{}",
    "a text": b'"x"',
    "nothing": b"",
    "deep": b"[" * 100_000,
    "not JSON": b"<html>",
    "a time that is none": json.dumps({"SystemTime": "soon"}).encode(),
    "a time without an offset": json.dumps({"SystemTime": "2026-01-01T00:00:00"}).encode(),
    "runtimes that are a list": json.dumps({"SystemTime": "2026-01-01T00:00:00Z", "Runtimes": [1]}).encode(),
    "options that are a text": json.dumps(
        {"SystemTime": "2026-01-01T00:00:00Z", "SecurityOptions": "x"}
    ).encode(),
}


def answering(status: bytes, body: bytes) -> Any:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))

    return answer


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("status", [b"200 OK", b"302 Found\r\nLocation: http://example.org/"])
async def test_an_answer_that_is_none_comes_with_a_fix(tmp_path: Path, what: str, status: bytes) -> None:
    with fake_engine(tmp_path / "s", answering(status, BODIES[what])) as address:
        backend = DockerBackend(DockerConfig(base_url=address.url))
        calls = (
            lambda: backend.create(**NOTHING, timeout=60),
            lambda: backend.connect("1f"),
            backend.verify_isolation,
        )
        for call in calls:
            with pytest.raises(ConnectError, match="no Docker engine") as caught:
                await call()
            assert "DOCKER_HOST" in caught.value.hint
        (check,) = [each for each in await backend.diagnose() if each.status != "ok"]
        assert (check.name, check.status) == ("engine", "failed")


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b'{"Volumes": 5}', b'{"Volumes": [null]}', b'{"Volumes": []}']
)
async def test_a_listing_that_is_none_comes_with_a_fix(tmp_path: Path, body: bytes) -> None:
    with fake_engine(tmp_path / "s", answering(b"200 OK", body)) as address:
        with pytest.raises(ConnectError, match="no Docker engine"):
            await DockerBackend(DockerConfig(base_url=address.url)).list_managed()


@pytest.mark.parametrize("part", ["State", "Config", "HostConfig"])
@pytest.mark.parametrize("value", [None, [], "x", {}])
async def test_a_description_of_a_container_that_is_none_comes_with_a_fix(part: str, value: object) -> None:
    described = answered_object(json.dumps({**DESCRIBED, part: value}).encode())

    class Told(Engine):
        def __init__(self) -> None:
            pass

        async def get(self, path: str, /, **query: str) -> Answer:
            return described

    with pytest.raises((UnexpectedAnswer, ConnectError)):
        await describe(Told(), "1f", datetime(2026, 1, 1, tzinfo=UTC))


async def test_an_answer_of_an_execution_that_is_none_comes_with_a_fix(tmp_path: Path) -> None:
    with fake_engine(tmp_path / "s", answering(b"200 OK", b"{}")) as address:
        container = Container(Engine(Transport(address)), "1f")
        for call in (
            container.running,
            lambda: container.create_exec(["x"]),
            lambda: container.inspect_exec("x"),
        ):
            with pytest.raises(UnexpectedAnswer):
                await call()
