"""What a virtual sandbox can reach: servers that exist only here, judged by its network policy."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from sandboxio.network import NetworkPolicy

__all__ = ["Denial", "FakeNetwork", "FakeServer"]


class FakeServer:
    """A server that a test put into the fake's world.

    Attributes:
        body: What it answers to a request.
        hits: How many connections reached it.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.hits = 0

    def __repr__(self) -> str:
        return f"<FakeServer with {self.hits} hits>"


@dataclass(frozen=True, slots=True)
class Denial:
    """A connection that the policy of a sandbox refused."""

    sandbox_id: str
    host: str
    port: int


class FakeNetwork:
    """The network as one sandbox sees it."""

    def __init__(
        self,
        policy: NetworkPolicy,
        servers: Mapping[tuple[str, int], FakeServer],
        denied: Callable[[str, int], None],
    ) -> None:
        self._policy = policy
        self._servers = servers
        self._denied = denied

    def connect(self, host: str, port: int) -> FakeServer:
        """Open a connection.

        Raises:
            OSError: The policy refuses it, or nobody is there.
        """
        if not self._policy.permits(host, port):
            self._denied(host, port)
            if _is_address(host):
                raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        server = self._servers.get((host.lower(), port))
        if server is None:
            if _is_address(host):
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        server.hits += 1
        return server


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
