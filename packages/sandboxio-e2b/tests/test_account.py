"""Without a key, in the SDK's debug mode, or on another event loop nothing is asked of E2B."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trio

from sandboxio.errors import AuthError, ConfigurationError
from sandboxio_e2b import E2BBackend, E2BConfig
from sandboxio_e2b.account import api_options
from sandboxio_e2b.provisioner import E2BProvisioner

KEY = "e2b_" + "0" * 40

Call = Callable[[E2BBackend], Awaitable[object]]


class ControlPlane(ThreadingHTTPServer):
    """One that has no sandboxes, and remembers who asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    """Answers every listing with an empty one."""

    server: ControlPlane

    def do_GET(self) -> None:
        self.server.requests.append((self.path.partition("?")[0], self.headers["x-api-key"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def do_POST(self) -> None:
        self.server.requests.append((self.path, self.headers["x-api-key"]))
        self.send_error(500)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
        """Nothing is logged."""


@pytest.fixture
def control_plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    with ControlPlane() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.delenv("E2B_DEBUG", raising=False)
        monkeypatch.setenv("E2B_API_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("E2B_API_KEY", KEY)
        yield server
        server.shutdown()
        thread.join()


async def create(backend: E2BBackend) -> object:
    return await backend.create(
        template=None, resources=None, network=None, env=None, secrets=None, timeout=60, metadata=None
    )


async def connect(backend: E2BBackend) -> object:
    return await backend.connect("i1234")


async def list_managed(backend: E2BBackend) -> object:
    return await backend.list_managed()


async def kill_managed(backend: E2BBackend) -> object:
    return await backend.kill_managed("i1234")


every_call = pytest.mark.parametrize("call", [create, connect, list_managed, kill_managed])


def run(call: Call) -> object:
    async def main() -> object:
        return await call(E2BBackend())

    return asyncio.run(main())


def test_with_a_key_the_control_plane_is_asked(control_plane: ControlPlane) -> None:
    assert run(list_managed) == ()
    assert control_plane.requests == [("/v2/sandboxes", KEY)]


@every_call
@pytest.mark.parametrize("value", [None, "", " \n"])
def test_without_a_key_nobody_is_asked(
    call: Call, value: str | None, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("E2B_API_KEY")
    else:
        monkeypatch.setenv("E2B_API_KEY", value)
    with pytest.raises(AuthError) as caught:
        run(call)
    assert "E2B_API_KEY" in caught.value.message
    assert "E2B_API_KEY" in caught.value.hint
    assert control_plane.requests == []


@every_call
@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
def test_the_debug_mode_of_the_sdk_is_refused(
    call: Call, value: str, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_DEBUG", value)
    with pytest.raises(ConfigurationError, match="E2B_DEBUG") as caught:
        run(call)
    assert "unset E2B_DEBUG" in caught.value.hint
    assert control_plane.requests == []


@pytest.mark.parametrize("value", ["false", "", "0"])
def test_a_debug_mode_that_is_off_is_no_matter(
    value: str, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_DEBUG", value)
    assert run(list_managed) == ()
    assert len(control_plane.requests) == 1


@every_call
def test_another_event_loop_is_refused_with_the_fix(call: Call, control_plane: ControlPlane) -> None:
    async def main() -> None:
        with pytest.raises(ConfigurationError, match="asyncio only") as caught:
            await call(E2BBackend())
        assert 'backend="asyncio"' in caught.value.hint

    trio.run(main)
    assert control_plane.requests == []


@pytest.mark.usefixtures("control_plane")
def test_the_provisioner_has_no_options_for_another_event_loop() -> None:
    async def options() -> dict[str, object]:
        return E2BProvisioner(E2BConfig()).options()

    assert asyncio.run(options())["retries"] == 0
    with pytest.raises(ConfigurationError, match="asyncio only"):
        trio.run(options)


@pytest.mark.usefixtures("control_plane")
def test_the_options_are_the_timeout_no_retries_and_the_domain() -> None:
    assert api_options(E2BConfig(), request_timeout=7) == {"request_timeout": 7, "retries": 0}
    config = E2BConfig(domain="e2b.example.org")
    assert api_options(config, request_timeout=7) == {
        "request_timeout": 7,
        "retries": 0,
        "domain": "e2b.example.org",
    }
