"""What a machine may reach is enforced, and nothing else can be reached."""

from __future__ import annotations

import ssl

import pytest
from e2b_server.ports import Egress, Machine, ProcessConfig
from e2b_server.proxy import Incomplete, covered, host_header, server_name
from machine_suite import (
    CLOSED,
    Canary,
    boot,
    collect,
    output,
    refused,
)

pytestmark = pytest.mark.docker


FETCH = """
import http.client, sys
host, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    connection.request("GET", "/", headers={"Host": name})
    print(connection.getresponse().read().decode())
except Exception as exc:
    print(type(exc).__name__)
"""

HELLO = """
import socket, ssl, sys
context = ssl._create_unverified_context()
try:
    context.wrap_socket(socket.create_connection((sys.argv[1], 443), 5), server_hostname=sys.argv[2])
except Exception as exc:
    print(type(exc).__name__)
"""


async def python(machine: Machine, code: str, *arguments: str) -> str:
    process = await machine.start(ProcessConfig("python3", ("-c", code, *arguments), {}, None), stdin=False)
    out, err, _ = await collect(process)
    return (out + err).decode().strip()


async def fetch(machine: Machine, host: str, port: int = 80, name: str | None = None) -> bool:
    return await python(machine, FETCH, host, str(port), name or host) == "canary"


async def name_hosts(machine: Machine, *names: str) -> None:
    """Let a machine find names, at an address that leads nowhere: the proxy goes by the name alone."""
    lines = "".join(f"192.0.2.1\t{name}\n" for name in names)
    present = await output(machine, "cat /etc/hosts")
    await machine.write_hosts(f"{present}\n{lines}".encode())


async def test_closed_egress_has_no_network_and_cannot_be_opened(canary: Canary, machine: Machine) -> None:
    assert not await fetch(machine, canary.address)
    assert canary.reached == []
    assert (await output(machine, "ls /sys/class/net")).split() == ["lo"]
    await machine.set_egress(CLOSED)
    await refused("failed_precondition", machine.set_egress(Egress(open=True)))


async def test_egress_by_name_by_address_and_its_change(canary: Canary) -> None:
    names = {"canary.test": canary.address, "a.sub.test": canary.address, "other.test": canary.address}
    machine = await boot(Egress(open=False, hosts=("canary.test", "*.sub.test")), names=names)
    try:
        assert not await fetch(machine, "canary.test")  # nobody has told it where that is
        assert canary.reached == []
        await name_hosts(machine, *names)
        assert await fetch(machine, "canary.test")
        assert await fetch(machine, "a.sub.test")
        assert canary.reached == [(80, "canary.test"), (80, "a.sub.test")]
        canary.reached.clear()

        await python(machine, HELLO, "canary.test", "canary.test")
        assert canary.reached == [(443, "canary.test")]
        canary.reached.clear()

        assert not await fetch(machine, "other.test")
        assert not await fetch(machine, canary.address)
        assert not await fetch(machine, "canary.test", 8080)
        await python(machine, HELLO, "canary.test", "other.test")
        gateway = await output(machine, "awk '$2 == \"00000000\" {print $3}' /proc/net/route")
        host = ".".join(str(octet) for octet in reversed(bytes.fromhex(gateway.strip())))
        assert not await fetch(machine, host, 8080)
        assert (
            await python(
                machine, "import socket; s = socket.socket(socket.AF_INET6); s.connect(('2001:db8::1', 80))"
            )
            != ""
        )
        assert canary.reached == []

        await machine.set_egress(Egress(open=False, addresses=(f"{canary.address}/32",)))
        assert await fetch(machine, canary.address, 8080)
        await machine.set_egress(CLOSED)
        canary.reached.clear()
        assert not await fetch(machine, canary.address, 8080)
        assert not await fetch(machine, "canary.test")
        assert canary.reached == []
        await machine.write_hosts(b"127.0.0.1\tlocalhost\n")
        await machine.set_egress(Egress(open=True))
        assert await fetch(machine, "other.test", 8080)
        await machine.set_egress(CLOSED)
        assert "other.test" not in await output(machine, "cat /etc/hosts")
        await refused("invalid_argument", machine.set_egress(Egress(open=False, addresses=("x",))))
    finally:
        await machine.shutdown()


async def test_a_listed_name_keeps_its_own_loopback(canary: Canary) -> None:
    machine = await boot(Egress(open=False, hosts=("canary.test",)), names={"canary.test": canary.address})
    try:
        code = """
import socket
server = socket.create_server(("127.0.0.1", 8000))
client = socket.create_connection(("127.0.0.1", 8000))
print("own")
"""
        assert await python(machine, code) == "own"
    finally:
        await machine.shutdown()


def test_the_server_name_is_read_from_a_handshake() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="canary.test")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    assert server_name(hello) == "canary.test"
    for size in (0, 5, len(hello) - 1):
        with pytest.raises(Incomplete):
            server_name(hello[:size])
    assert server_name(b"GET / HTTP/1.1\r\nHost: canary.test\r\n\r\n") is None


def test_the_host_header_is_read_from_a_request() -> None:
    assert host_header(b"GET / HTTP/1.1\r\nhost: A.test:80\r\n\r\n") == "A.test"
    assert host_header(b"GET / HTTP/1.0\r\n\r\n") is None
    with pytest.raises(Incomplete):
        host_header(b"GET / HTTP/1.1\r\nHost: a.test\r\n")


def test_a_suffix_rule_covers_what_is_below_it_alone() -> None:
    assert covered("A.b.test.", ("*.b.test",))
    assert not covered("b.test", ("*.b.test",))
    assert not covered("xb.test", ("*.b.test",))
    assert covered("b.test", ("B.test",))
