"""The network policy and the grammar of its rules."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxio.errors import ConfigurationError
from sandboxio.network import DEFAULT_PORTS, EgressRule, NetworkPolicy


def test_the_default_denies_everything() -> None:
    policy = NetworkPolicy()
    assert (policy.egress, policy.allow, policy.ingress_ports) == ("deny", (), ())
    assert not policy.permits("example.org", 443)


@pytest.mark.parametrize(
    ("text", "host", "network", "ports"),
    [
        ("example.org", "example.org", None, DEFAULT_PORTS),
        ("Example.ORG.", "example.org", None, DEFAULT_PORTS),
        ("example.org:8443", "example.org", None, (8443,)),
        ("*.example.org", "*.example.org", None, DEFAULT_PORTS),
        ("10.1.2.3", None, "10.1.2.3/32", DEFAULT_PORTS),
        ("10.1.2.3:5432", None, "10.1.2.3/32", (5432,)),
        ("10.0.0.0/8", None, "10.0.0.0/8", DEFAULT_PORTS),
        ("10.0.0.0/8:22", None, "10.0.0.0/8", (22,)),
        ("2001:db8::1", None, "2001:db8::1/128", DEFAULT_PORTS),
        ("[2001:db8::1]:53", None, "2001:db8::1/128", (53,)),
        ("[2001:db8::/32]", None, "2001:db8::/32", DEFAULT_PORTS),
        ("localhost", "localhost", None, DEFAULT_PORTS),
    ],
)
def test_a_rule_is_read(text: str, host: str | None, network: str | None, ports: tuple[int, ...]) -> None:
    rule = EgressRule.parse(text)
    assert rule.host == host
    assert (None if rule.network is None else str(rule.network)) == network
    assert rule.ports == ports


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "*",
        "*.",
        "a.*.org",
        "example.org:0",
        "example.org:65536",
        "example.org:http",
        "example.org:",
        "example.org:٣",
        "http://example.org",
        "example.org/path",
        "user@example.org",
        "-a.org",
        "a..org",
        "10.0.0.1/8",
        "10.0.0",
        "0x7f.1",
        "256.1.1.1",
        "[2001:db8::1",
        "[10.0.0.1]:80",
        "[2001:db8::1]80",
        "fe80::1%eth0",
        "a" * 64 + ".org",
        "ex\nample.org",
        "пример.рф",
    ],
)
def test_anything_else_is_no_rule(text: str) -> None:
    with pytest.raises(ConfigurationError):
        NetworkPolicy(allow=(text,))


@pytest.mark.parametrize("value", [None, 80, b"example.org"])
def test_a_rule_is_text(value: Any) -> None:
    with pytest.raises(ConfigurationError):
        NetworkPolicy(allow=(value,))


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        rule = EgressRule.parse(text)
    except ConfigurationError:
        return
    assert (rule.host is None) != (rule.network is None)
    assert all(1 <= port <= 65535 for port in rule.ports)


@pytest.mark.parametrize(
    ("rule", "host", "port", "covered"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "EXAMPLE.org.", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org", "www.example.org", 443, False),
        ("*.example.org", "www.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "notexample.org", 443, False),
        ("10.0.0.0/8", "10.9.9.9", 80, True),
        ("10.0.0.0/8", "11.0.0.1", 80, False),
        ("10.0.0.0/8", "ten.example.org", 80, False),
        ("2001:db8::/32", "2001:db8::5", 443, True),
        ("2001:db8::/32", "[2001:db8::5]", 443, True),
    ],
)
def test_what_a_rule_covers(rule: str, host: str, port: int, covered: bool) -> None:
    assert EgressRule.parse(rule).matches(host, port) is covered
    assert NetworkPolicy(allow=(rule,)).permits(host, port) is covered


@pytest.mark.parametrize("egress", ["allow", "learn"])
def test_a_list_goes_with_deny_only(egress: Any) -> None:
    with pytest.raises(ConfigurationError, match="allow list"):
        NetworkPolicy(egress=egress, allow=("example.org",))


def test_allow_permits_everything_and_learn_nothing() -> None:
    assert NetworkPolicy(egress="allow").permits("example.org", 22)
    assert not NetworkPolicy(egress="learn").permits("example.org", 443)


def test_an_unknown_egress_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="egress"):
        NetworkPolicy(egress="maybe")  # type: ignore[arg-type]


def test_a_single_string_is_refused_with_the_fix() -> None:
    with pytest.raises(ConfigurationError) as caught:
        NetworkPolicy(allow="example.org")  # type: ignore[arg-type]
    assert "('example.org',)" in caught.value.hint


def test_a_list_becomes_a_tuple() -> None:
    assert NetworkPolicy(allow=["example.org"]).allow == ("example.org",)
    assert NetworkPolicy(ingress_ports=[80]).ingress_ports == (80,)


@pytest.mark.parametrize("name", ["allow", "ingress_ports"])
@pytest.mark.parametrize("value", [5, None, b"example.org"])
def test_what_cannot_be_a_list_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"NetworkPolicy.{name} is {type(value).__name__}"):
        NetworkPolicy(**{name: value})


def test_rules_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = NetworkPolicy(allow=("example.org", "10.0.0.0/8"))
    monkeypatch.delattr(EgressRule, "parse")
    assert policy.permits("example.org", 443)
    assert policy.rules is policy.rules
    assert [rule.host for rule in policy.rules] == ["example.org", None]


def test_a_policy_survives_a_copy_and_another_process() -> None:
    policy = NetworkPolicy(allow=["example.org"])
    changed = dataclasses.replace(policy, allow=("example.net",))
    assert changed.permits("example.net", 443)
    assert not changed.permits("example.org", 443)
    assert pickle.loads(pickle.dumps(policy)).permits("example.org", 443)
    assert repr(policy) == "NetworkPolicy(egress='deny', allow=('example.org',), ingress_ports=())"


@pytest.mark.parametrize("port", [0, 65536, -1, True, "80"])
def test_an_ingress_port_is_a_port(port: Any) -> None:
    with pytest.raises(ConfigurationError, match="ingress_ports"):
        NetworkPolicy(ingress_ports=(port,))
