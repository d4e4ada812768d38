"""The network policy of a sandbox and the grammar of its rules.

A rule is a host, a `*.suffix`, an IP address or a CIDR block, each with an optional `:port`
(IPv6 in brackets when a port follows). Without a port a rule means 80 and 443.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, Literal, get_args

from sandboxio.errors import ConfigurationError
from sandboxio.models import shown

__all__ = ["EgressRule", "NetworkPolicy"]

Egress = Literal["deny", "allow", "learn"]

DEFAULT_PORTS: Final = (80, 443)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class EgressRule:
    """One parsed entry of an allowlist.

    Attributes:
        host: A lower-case host name or `*.suffix`, or `None` for a network.
        network: An address block, or `None` for a host.
        ports: The TCP ports it covers.

    Example: `EgressRule.parse("*.example.org:8443").matches("a.example.org", 8443)`
    """

    host: str | None
    network: IPv4Network | IPv6Network | None
    ports: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> EgressRule:
        """Read one rule.

        Raises:
            ConfigurationError: The text is none of the forms that a rule can take.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers are not all typed
            raise _bad_rule(shown(text))
        target, ports = _split_port(text)
        network = _as_network(target)
        if network is not None:
            return cls(None, network, ports)
        host = target.lower().removesuffix(".")
        if len(host) > 253 or not _HOST.fullmatch(host) or _looks_numeric(host):
            raise _bad_rule(text)
        return cls(host, None, ports)

    def matches(self, host: str, port: int) -> bool:
        """Whether a connection to `host` (a name or an address) and `port` is covered.

        A name never matches an address rule: what it resolves to is checked separately.
        """
        if port not in self.ports:
            return False
        if self.network is not None:
            try:
                return ip_address(host.strip("[]")) in self.network
            except ValueError:
                return False
        name = host.lower().removesuffix(".")
        assert self.host is not None
        if self.host.startswith("*."):
            return name.endswith(self.host[1:])
        return name == self.host


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """What a sandbox may reach. The default denies everything.

    Attributes:
        egress: `"deny"`, `"allow"`, or `"learn"` (deny, and record what was attempted).
        allow: With `"deny"`: the only destinations that are reachable. Any iterable of texts is
            taken, and kept as a tuple.
        ingress_ports: Ports to expose, likewise; refused by every backend without TUNNELS.
        rules: The allow list, parsed.

    Raises:
        ConfigurationError: The combination contradicts itself, or a rule is malformed.

    Example: `NetworkPolicy(allow=("example.org", "*.example.net", "10.0.0.0/8:5432"))`
    """

    egress: Egress = "deny"
    allow: Sequence[str] = ()
    ingress_ports: Sequence[int] = ()
    rules: tuple[EgressRule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.egress not in get_args(Egress):
            raise ConfigurationError(
                f"NetworkPolicy.egress is {shown(self.egress)}",
                hint='use egress="deny", "allow" or "learn"',
            )
        if isinstance(self.allow, str):
            raise ConfigurationError(
                "NetworkPolicy.allow is a single string",
                hint=f"give a tuple: allow=({self.allow!r},)",
            )
        object.__setattr__(self, "allow", _as_tuple("allow", self.allow))
        object.__setattr__(self, "ingress_ports", _as_tuple("ingress_ports", self.ingress_ports))
        if self.allow and self.egress != "deny":
            raise ConfigurationError(
                f'NetworkPolicy(egress="{self.egress}") cannot have an allow list',
                hint='leave egress at "deny": then only the listed destinations are reachable',
            )
        object.__setattr__(self, "rules", tuple(EgressRule.parse(text) for text in self.allow))
        for port in self.ingress_ports:
            if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigurationError(
                    f"NetworkPolicy.ingress_ports holds {shown(port)}",
                    hint="use ports from 1 to 65535",
                )

    def permits(self, host: str, port: int) -> bool:
        """Whether a connection to `host` and `port` would be let through."""
        if self.egress == "allow":
            return True
        return any(rule.matches(host, port) for rule in self.rules)


def _as_tuple(name: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"NetworkPolicy.{name} is {type(given).__name__}, not a tuple",
            hint=f"give a tuple, also for one entry: {name}=(…,)",
        )
    return tuple(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _split_port(text: str) -> tuple[str, tuple[int, ...]]:
    if text.startswith("["):
        inner, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in inner or (rest and not rest.startswith(":")):
            raise _bad_rule(text)
        return inner, _ports(rest[1:], text) if rest else DEFAULT_PORTS
    if text.count(":") == 1:
        target, _, port = text.partition(":")
        return target, _ports(port, text)
    return text, DEFAULT_PORTS


def _ports(text: str, rule: str) -> tuple[int, ...]:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 1 <= int(text) <= 65535:
        raise _bad_rule(rule)
    return (int(text),)


def _as_network(target: str) -> IPv4Network | IPv6Network | None:
    if "%" in target:
        return None
    try:
        return ip_network(target, strict=True)
    except ValueError:
        return None


def _looks_numeric(host: str) -> bool:
    """`10.0.0` and `0x7f.1` are addresses to some resolvers, so they are no host names here."""
    last = host.rpartition(".")[2]
    return last.isdecimal() or last.startswith("0x")


def _bad_rule(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text[:80]!r} is not a network rule",
        hint="use host, *.suffix, an address or a CIDR block, each with an optional :port; "
        "IPv6 in brackets before a port, and no host bits set in a block",
    )
