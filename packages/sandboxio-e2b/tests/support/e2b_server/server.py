"""The local E2B server as an object: started, inspected and stopped from any thread."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

import uvicorn

from .application import Application
from .exchange import Connection
from .faults import Fault, Faults
from .ports import Booting, Context, ProcessConfig
from .state import Cloud, Sandbox, SandboxRecord

__all__ = ["E2BServer"]

TEMPLATES = ("base", "code-interpreter-v1")

Result = TypeVar("Result")

_START_TIMEOUT = 10.0  # seconds
_CALL_TIMEOUT = 120.0  # seconds; shutting many machines down takes its time


class E2BServer:
    """Control plane, envd and code interpreter on one address of the loopback interface.

    Args:
        boot: Makes machines; without it they are Docker sandboxes.
        port: 0 for any free one.
        templates: The template ids there are; others are not found.
        longest_lifetime: Of any sandbox, in seconds.

    Example:
        >>> with E2BServer() as server:
        ...     sandbox = await AsyncSandbox.create(**server.connection)
    """

    def __init__(
        self,
        boot: Booting | None = None,
        *,
        port: int = 0,
        templates: Collection[str] = TEMPLATES,
        longest_lifetime: int = 3600,
    ) -> None:
        self.api_key = f"e2b_{secrets.token_hex(20)}"
        self._faults = Faults()
        self._cloud = Cloud(boot or _docker(), templates=templates, longest_lifetime=longest_lifetime)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=512)
        # asyncio does this for its own sockets; without it each answer waits for a delayed ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._uvicorn = _Announcing(
            uvicorn.Config(
                Application(self._cloud, self._faults, self.api_key),
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                # A pooled connection that the server gives up just then fails the client's next request.
                timeout_keep_alive=600,
                timeout_graceful_shutdown=5,
            ),
            self._started,
        )
        self._thread = threading.Thread(target=self._run, name="e2b-server", daemon=True)

    @property
    def connection(self) -> dict[str, str]:
        """The SDK's keywords that lead here."""
        return {"api_key": self.api_key, "api_url": self.url, "sandbox_url": self.url}

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that lead the SDK here."""
        return {f"E2B_{name.upper()}": value for name, value in self.connection.items()}

    @property
    def requests(self) -> Counter[str]:
        """Requests so far, by operation (`create`, `start`, …), by group (`rpc`, …) and `any` in all."""
        return self._faults.requests

    def start(self) -> None:
        """Serve, in a thread of its own.

        Raises:
            RuntimeError: It did not come up.
        """
        self._thread.start()
        if not self._started.wait(_START_TIMEOUT):
            raise RuntimeError("the server did not start")

    def close(self) -> None:
        """Shut all machines down and stop serving. Closing twice is no error."""
        if self._thread.is_alive():
            self._call(self._cloud.close())
            self._on_loop(self._hang_up)
            self._thread.join(_CALL_TIMEOUT)
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def misbehave(self, *faults: Fault) -> AbstractContextManager[None]:
        """Let these faults happen within the block; the first that fits a request strikes it."""
        return self._faults.misbehave(*faults)

    def sandboxes(self, metadata: Mapping[str, str] | None = None) -> list[SandboxRecord]:
        """Those with this metadata among others, also while they are being booted or shut down."""
        wanted = (metadata or {}).items()
        return self._on_loop(
            lambda: [each.record() for each in self._cloud.sandboxes if wanted <= each.metadata.items()]
        )

    def processes(self, sandbox_id: str) -> dict[int, ProcessConfig]:
        """The live processes that were started through envd, by process id."""
        return self._on_loop(
            lambda: {pid: each.config for pid, each in self._running(sandbox_id).machine.processes.items()}
        )

    def contexts(self, sandbox_id: str) -> list[Context]:
        """The code contexts that are open."""

        async def ask() -> list[Context]:
            return list(await self._running(sandbox_id).machine.kernels.contexts())

        return self._call(ask())

    def expire(self, sandbox_id: str) -> None:
        """End a lifetime now. The sandbox is out of reach when this returns; its machine goes meanwhile."""
        self._on_loop(lambda: self._cloud.begin_end(self._running(sandbox_id)))

    def leftovers(self) -> list[SandboxRecord]:
        """What is still there when every boot and shutdown under way has come to its end."""
        self._call(self._cloud.settle())
        return self.sandboxes()

    def _running(self, sandbox_id: str) -> Sandbox:
        sandbox = self._cloud.running(sandbox_id)
        if sandbox is None:
            raise KeyError(f"no sandbox {sandbox_id!r} is running")
        return sandbox

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._uvicorn.serve(sockets=[self._socket])

    def _hang_up(self) -> None:
        self._uvicorn.should_exit = True
        for connection in list(self._uvicorn.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def _on_loop(self, function: Callable[[], Result]) -> Result:
        async def call() -> Result:
            return function()

        return self._call(call())

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        assert self._loop is not None, "the server is not started"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT)


class _Announcing(uvicorn.Server):
    """Tells another thread when it listens."""

    def __init__(self, config: uvicorn.Config, started: threading.Event) -> None:
        super().__init__(config)
        self._listening = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening.set()


def _docker() -> Booting:
    from .machine import boot  # Docker is needed by this default only

    return boot
