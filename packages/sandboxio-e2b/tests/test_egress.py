"""A network policy in E2B's terms."""

from __future__ import annotations

import pytest

from sandboxio.errors import CapabilityNotSupported
from sandboxio.network import NetworkPolicy
from sandboxio_e2b.egress import network_options


def test_the_default_is_no_network_at_all() -> None:
    assert network_options(NetworkPolicy()) == {
        "allow_internet_access": False,
        "network": {"allow_public_traffic": False},
    }


def test_open_means_open_to_the_outside_only() -> None:
    assert network_options(NetworkPolicy(egress="allow")) == {
        "allow_internet_access": True,
        "network": {"allow_public_traffic": False},
    }


def test_a_list_denies_everything_else() -> None:
    options = network_options(NetworkPolicy(allow=("Example.org", "*.example.net")))
    assert options == {
        "network": {
            "allow_public_traffic": False,
            "allow_out": ["example.org", "*.example.net"],
            "deny_out": ["0.0.0.0/0"],
        }
    }


@pytest.mark.parametrize(
    "policy", [NetworkPolicy(), NetworkPolicy(egress="allow"), NetworkPolicy(allow=("a.b",))]
)
def test_nobody_outside_ever_reaches_a_port(policy: NetworkPolicy) -> None:
    assert network_options(policy)["network"]["allow_public_traffic"] is False


@pytest.mark.parametrize(
    "rule", ["example.org:8443", "example.org:80", "example.org:443", "*.example.net:22"]
)
def test_a_port_cannot_be_kept_to(rule: str) -> None:
    with pytest.raises(CapabilityNotSupported, match="by host and not by port") as caught:
        network_options(NetworkPolicy(allow=("fine.example", rule)))
    assert rule in caught.value.message
    assert repr(rule.partition(":")[0]) in caught.value.hint


@pytest.mark.parametrize(
    "rule", ["192.0.2.1", "192.0.2.0/24", "192.0.2.1:443", "2001:db8::1", "[2001:db8::1]:443"]
)
def test_an_address_cannot_be_kept_to_its_ports(rule: str) -> None:
    with pytest.raises(CapabilityNotSupported, match="every port of an address") as caught:
        network_options(NetworkPolicy(allow=("fine.example", rule)))
    assert rule in caught.value.message


def test_what_is_only_learned_is_denied() -> None:
    assert network_options(NetworkPolicy(egress="learn"))["allow_internet_access"] is False
