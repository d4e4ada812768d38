"""What the adapter binds to in docker-py and h11: a version that changes it fails here, with its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import docker
import h11
import pytest
import requests
from docker.constants import IS_WINDOWS_PLATFORM
from docker.context import ContextAPI
from docker.errors import APIError, DockerException
from docker.models.containers import Container, ContainerCollection
from docker.models.volumes import VolumeCollection
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env, parse_host, parse_repository_tag

from sandboxio_docker.address import Address, TLSFiles
from sandboxio_docker.exchange import Exchange

ENGINE = "tcp://192.0.2.1:2375"


@pytest.mark.parametrize(
    ("function", "positional", "keywords"),
    [
        (docker.APIClient.__init__, (), {"base_url", "version", "timeout", "tls", "use_ssh_client"}),
        (docker.APIClient.pull, ("repository",), {"tag", "stream", "decode"}),
        (docker.APIClient.close, (), set()),
        (docker.DockerClient.close, (), set()),
        (TLSConfig.__init__, (), {"client_cert", "ca_cert", "verify"}),
        (ContainerCollection.get, ("container_id",), set()),
        (ContainerCollection.list, (), {"all", "filters", "ignore_removed"}),
        (VolumeCollection.prune, (), {"filters"}),
        (ContextAPI.get_context, ("name",), set()),
        (ContextAPI.kwargs_from_context, (), {"environment"}),
        (kwargs_from_env, (), {"environment"}),
        (parse_host, ("addr", "is_win32"), {"tls"}),
        (parse_repository_tag, ("repo_name",), set()),
        (h11.Connection.__init__, ("our_role",), {"max_incomplete_event_size"}),
        (h11.Connection.send, ("event",), set()),
        (h11.Connection.receive_data, ("data",), set()),
        (h11.Connection.next_event, (), set()),
        (h11.Request.__init__, (), {"method", "target", "headers"}),
        (h11.Data.__init__, (), {"data"}),
        (h11.EndOfMessage.__init__, (), set()),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_what_is_called_takes_what_it_is_given(
    function: Callable[..., Any], positional: tuple[str, ...], keywords: set[str]
) -> None:
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    assert tuple(found)[: len(positional)] == positional
    assert keywords <= set(found)
    required = {
        name
        for name, parameter in found.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    assert required <= {*positional, *keywords}


def test_a_client_passes_its_arguments_on_and_asks_nobody_before_it_is_used() -> None:
    client = docker.DockerClient(base_url=ENGINE, version="1.41", timeout=7)
    try:
        assert isinstance(client.containers, ContainerCollection)
        assert isinstance(client.volumes, VolumeCollection)
        assert (client.api.base_url, client.api.timeout) == ("http://192.0.2.1:2375", 7)
    finally:
        client.close()


@pytest.mark.parametrize(
    "address",
    [
        Address("unix", "/run/engine.sock"),
        Address("tcp", "192.0.2.1", 2375),
        Address("tcp", "2001:db8::1", 2375),
        Address("tcp", "192.0.2.1", 2376, tls=TLSFiles(verify=False)),
    ],
    ids=lambda address: address.url,
)
def test_an_address_of_ours_is_one_of_docker_py(address: Address) -> None:
    client = docker.APIClient(**address.sdk_arguments(), version="1.41")
    try:
        assert client.base_url.startswith(("http+docker://", "http://", "https://"))
        assert (client.verify is False) == (address.tls is not None)
    finally:
        client.close()


def test_a_tls_configuration_keeps_what_was_given(tmp_path: Any) -> None:
    paths = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path in paths:
        path.touch()
    ca, cert, key = map(str, paths)
    config = TLSConfig(client_cert=(cert, key), ca_cert=ca, verify=True)
    assert (config.cert, config.ca_cert, config.verify) == ((cert, key), ca, True)
    assert TLSConfig(verify=False).cert is None


@pytest.mark.parametrize(
    ("environment", "keys"),
    [
        ({}, set()),
        ({"DOCKER_HOST": ENGINE}, {"base_url"}),
        (
            {"DOCKER_HOST": ENGINE, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/certificates"},
            {"base_url", "tls"},
        ),
    ],
)
def test_the_environment_is_read_as_the_adapter_expects(
    environment: dict[str, str], keys: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.isfile", lambda _: True)
    assert set(kwargs_from_env(environment=environment)) == keys


@pytest.mark.parametrize(
    ("text", "tls", "expected"),
    [
        (None, False, "http+unix:///var/run/docker.sock"),
        ("unix:///run/x.sock", False, "http+unix:///run/x.sock"),
        ("tcp://192.0.2.1:2375", False, "http://192.0.2.1:2375"),
        ("tcp://192.0.2.1:2376", True, "https://192.0.2.1:2376"),
        ("ssh://user@192.0.2.1", False, "ssh://user@192.0.2.1:22"),
    ],
)
def test_an_address_is_spelt_out_as_the_adapter_reads_it(text: str | None, tls: bool, expected: str) -> None:
    assert parse_host(text, False, tls=tls) == expected


def test_an_address_that_is_none_is_an_error_that_the_adapter_catches() -> None:
    with pytest.raises((DockerException, ValueError)):
        parse_host("nonsense://x", False)


def test_a_context_that_is_not_there_is_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert ContextAPI.get_context("no-such-context") is None
    assert isinstance(ContextAPI.kwargs_from_context(environment={"DOCKER_CONFIG": str(tmp_path)}), dict)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("alpine", ("alpine", None)),
        ("alpine:3", ("alpine", "3")),
        ("registry.test:5000/team/image:tag", ("registry.test:5000/team/image", "tag")),
        ("image@sha256:" + "0" * 64, ("image", "sha256:" + "0" * 64)),
    ],
)
def test_an_image_name_comes_apart(name: str, parts: tuple[str, str | None]) -> None:
    assert parse_repository_tag(name) == parts


def test_errors_are_of_the_kinds_that_are_caught() -> None:
    assert issubclass(APIError, DockerException)
    assert issubclass(requests.RequestException, OSError)
    assert APIError("m", explanation="why").explanation == "why"


def test_a_container_has_what_the_reaper_reads() -> None:
    container = Container({"Id": "1f", "Name": "/n", "Config": {"Labels": {"sandboxio.creation": "c"}}})
    assert container.name == "n"
    assert container.labels == {"sandboxio.creation": "c"}
    assert {"force", "v"} <= set(inspect.signature(docker.APIClient.remove_container).parameters)
    assert callable(container.remove)


def test_the_platform_is_a_flag() -> None:
    assert isinstance(IS_WINDOWS_PLATFORM, bool)


class TestH11:
    """The protocol of one exchange."""

    def test_its_errors(self) -> None:
        assert issubclass(h11.LocalProtocolError, h11.ProtocolError)
        assert issubclass(h11.RemoteProtocolError, h11.ProtocolError)

    def test_a_body_that_is_shorter_than_announced_is_a_fault_of_ours(self) -> None:
        connection = h11.Connection(h11.CLIENT)
        head = [("Host", "docker"), ("Content-Length", "5")]
        connection.send(h11.Request(method="PUT", target="/", headers=head))
        connection.send(h11.Data(data=b"abc"))
        with pytest.raises(h11.LocalProtocolError):
            connection.send(h11.EndOfMessage())

    def test_a_head_that_does_not_end_is_refused(self) -> None:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=64)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "docker")]))
        connection.receive_data(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100)
        with pytest.raises(h11.RemoteProtocolError):
            connection.next_event()

    def test_an_answer_is_a_head_pieces_and_an_end(self) -> None:
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "docker")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(b"HTTP/1.1 200 OK\r\nX-Name: v\r\nContent-Length: 2\r\n\r\nab")
        head, data, end = (connection.next_event() for _ in range(3))
        assert isinstance(head, h11.Response)
        assert (head.status_code, list(head.headers)) == (200, [(b"x-name", b"v"), (b"content-length", b"2")])
        assert isinstance(data, h11.Data)
        assert bytes(data.data) == b"ab"
        assert isinstance(end, h11.EndOfMessage)

    def test_what_comes_behind_a_switch_of_protocols_is_left_over(self) -> None:
        connection = h11.Connection(h11.CLIENT)
        head = [("Host", "docker"), ("Connection", "Upgrade"), ("Upgrade", "tcp"), ("Content-Length", "0")]
        connection.send(h11.Request(method="POST", target="/", headers=head))
        connection.send(h11.EndOfMessage())
        connection.receive_data(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nraw")
        event = connection.next_event()
        assert isinstance(event, h11.InformationalResponse)
        assert event.status_code == 101
        assert connection.trailing_data[0] == b"raw"

    def test_more_is_asked_for_with_a_mark_of_its_own(self) -> None:
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "docker")]))
        assert connection.next_event() is h11.NEED_DATA

    async def test_the_exchange_reads_what_h11_says(self) -> None:
        class Wire:
            def __init__(self) -> None:
                self.sent = b""
                self.pieces = [
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na",
                    b"b\r\n0\r\n\r\n",
                ]

            async def send(self, data: memoryview) -> int:
                self.sent += data
                return len(data)

            async def receive(self) -> bytes:
                return self.pieces.pop(0) if self.pieces else b""

        wire = Wire()
        exchange = Exchange(wire, "GET /x", 5)  # type: ignore[arg-type]
        await exchange.send_head("GET", "/x", {"X-Name": "v"})
        await exchange.end_request()
        assert wire.sent == b"GET /x HTTP/1.1\r\nHost: docker\r\nX-Name: v\r\n\r\n"
        assert (await exchange.head()).status == 200
        assert await exchange.read_body(10) == b"ab"
