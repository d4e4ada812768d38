"""A network policy in E2B's terms, and what E2B cannot enforce."""

from __future__ import annotations

from typing import Any, Final

from sandboxio.errors import CapabilityNotSupported
from sandboxio.network import DEFAULT_PORTS, NetworkPolicy

__all__ = ["network_options"]

_EVERYWHERE: Final = "0.0.0.0/0"


def network_options(policy: NetworkPolicy) -> dict[str, Any]:
    """The keyword arguments of the SDK's `create` that put a policy in force.

    In no case may anybody from outside reach a port of the sandbox: E2B would publish them all.

    Raises:
        CapabilityNotSupported: The list names a port or an address. E2B filters names, by the Host
            header on port 80 and the TLS server name on port 443; of an address it opens every port.

    Example: `network_options(NetworkPolicy(allow=("example.org",)))`
    """
    closed = {"allow_public_traffic": False}
    if policy.egress == "allow":
        return {"allow_internet_access": True, "network": closed}
    if not policy.rules:
        return {"allow_internet_access": False, "network": closed}
    hosts: list[str] = []
    for text, rule in zip(policy.allow, policy.rules, strict=True):
        if rule.host is None:
            raise CapabilityNotSupported(
                f"E2B opens every port of an address, so {text[:80]!r} cannot be kept to ports 80 and 443",
                hint="name hosts instead of addresses, or use a backend that filters addresses",
            )
        if rule.ports != DEFAULT_PORTS:
            raise CapabilityNotSupported(
                f"E2B filters by host and not by port, so {text[:80]!r} cannot be kept to its port",
                hint=f"name the host alone, {rule.host!r}: ports 80 and 443 are then open to it",
            )
        hosts.append(rule.host)
    return {"network": {**closed, "allow_out": hosts, "deny_out": [_EVERYWHERE]}}
