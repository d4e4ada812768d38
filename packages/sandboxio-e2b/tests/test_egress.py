"""A network policy in E2B's terms."""

from __future__ import annotations

import asyncio

import pytest

from sandboxio.errors import CapabilityNotSupported
from sandboxio.network import NetworkPolicy
from sandboxio_e2b.egress import name_hosts, network_options

with_and_without_dns = pytest.mark.parametrize("allow_dns", [False, True])


@with_and_without_dns
def test_the_default_is_no_network_at_all(allow_dns: bool) -> None:
    assert network_options(NetworkPolicy(), allow_dns=allow_dns) == {
        "allow_internet_access": False,
        "network": {"allow_public_traffic": False},
    }


@with_and_without_dns
def test_what_is_only_learned_is_denied(allow_dns: bool) -> None:
    learned = network_options(NetworkPolicy(egress="learn"), allow_dns=allow_dns)
    assert learned == network_options(NetworkPolicy(), allow_dns=allow_dns)


@with_and_without_dns
def test_open_means_open_to_the_outside_only(allow_dns: bool) -> None:
    assert network_options(NetworkPolicy(egress="allow"), allow_dns=allow_dns) == {
        "allow_internet_access": True,
        "network": {"allow_public_traffic": False},
    }


def test_a_list_denies_everything_else_name_servers_included() -> None:
    assert network_options(NetworkPolicy(allow=("Example.org", "a.example.net")), allow_dns=False) == {
        "network": {
            "allow_public_traffic": False,
            "allow_out": ["example.org", "a.example.net"],
            "deny_out": ["0.0.0.0/0"],
            "dns_servers": [],
        }
    }


def test_a_name_server_is_for_who_accepts_it() -> None:
    assert network_options(NetworkPolicy(allow=("example.org", "*.example.net")), allow_dns=True) == {
        "network": {
            "allow_public_traffic": False,
            "allow_out": ["example.org", "*.example.net"],
            "deny_out": ["0.0.0.0/0"],
        }
    }


def test_names_that_only_a_name_server_can_tell_need_one() -> None:
    with pytest.raises(CapabilityNotSupported, match="needs a name server") as caught:
        network_options(NetworkPolicy(allow=("fine.example", "*.example.net")), allow_dns=False)
    assert "*.example.net" in caught.value.message
    assert "allow_dns=True" in caught.value.hint


@with_and_without_dns
@pytest.mark.parametrize(
    "rule", ["example.org:8443", "example.org:80", "example.org:443", "*.example.net:22"]
)
def test_a_port_cannot_be_kept_to(rule: str, allow_dns: bool) -> None:
    with pytest.raises(CapabilityNotSupported, match="by host and not by port") as caught:
        network_options(NetworkPolicy(allow=("fine.example", rule)), allow_dns=allow_dns)
    assert rule in caught.value.message
    assert repr(rule.partition(":")[0]) in caught.value.hint


@with_and_without_dns
@pytest.mark.parametrize(
    "rule", ["192.0.2.1", "192.0.2.0/24", "192.0.2.1:443", "2001:db8::1", "[2001:db8::1]:443"]
)
def test_an_address_cannot_be_kept_to_its_ports(rule: str, allow_dns: bool) -> None:
    with pytest.raises(CapabilityNotSupported, match="every port of an address") as caught:
        network_options(NetworkPolicy(allow=("fine.example", rule)), allow_dns=allow_dns)
    assert rule in caught.value.message


class Files:
    """One file of a sandbox, which root alone may write."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def read(self, path: str, *, format: str) -> bytearray:  # noqa: A002 -- the SDK's word
        assert (path, format) == ("/etc/hosts", "bytes")
        return bytearray(self.content)

    async def write(self, path: str, data: bytes, *, user: str) -> None:
        assert (path, user) == ("/etc/hosts", "root")
        self.content = data


class Native:
    """As much of a sandbox as has files."""

    def __init__(self, content: bytes) -> None:
        self.files = Files(content)


@pytest.mark.parametrize("present", [b"", b"127.0.0.1 localhost\n", b"127.0.0.1 localhost", b"# caf\xe9\n"])
def test_listed_hosts_are_found_without_a_name_server(present: bytes) -> None:
    native = Native(present)
    policy = NetworkPolicy(allow=("Example.org", "a.example.net"))
    asyncio.run(name_hosts(native, policy))  # type: ignore[arg-type]
    assert native.files.content.startswith(present)
    added = [line.split() for line in native.files.content[len(present) :].splitlines() if line]
    assert [names for _, *names in added] == [[b"example.org"], [b"a.example.net"]]
    assert native.files.content[len(present) : len(present) + 1] == b"\n"
    assert native.files.content.endswith(b"\n")
