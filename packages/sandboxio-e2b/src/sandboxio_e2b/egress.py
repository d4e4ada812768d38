"""A network policy in E2B's terms, and what E2B cannot enforce."""

from __future__ import annotations

from typing import Any, Final

from e2b_code_interpreter import AsyncSandbox

from sandboxio.errors import CapabilityNotSupported
from sandboxio.network import DEFAULT_PORTS, NetworkPolicy

__all__ = ["name_hosts", "network_options"]

_EVERYWHERE: Final = "0.0.0.0/0"


_NO_ROUTE: Final = "192.0.2.1"
_HOSTS_FILE: Final = "/etc/hosts"
_ROOT: Final = "root"


def network_options(policy: NetworkPolicy, *, allow_dns: bool) -> dict[str, Any]:
    """The keyword arguments of the SDK's `create` that put a policy in force.

    A port of the sandbox is in no case reached from outside without its token: E2B would publish them.

    Args:
        policy: The policy.
        allow_dns: Whether code under an allow list may reach E2B's name server, and so send it data.

    Raises:
        CapabilityNotSupported: The list names a port or an address. E2B filters names, by the Host
            header on port 80 and the TLS server name on port 443; of an address it opens every port.
            Or it has a `*.` in it, whose names only a name server can tell.

    Example: `network_options(NetworkPolicy(allow=("example.org",)), allow_dns=False)`
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
        if rule.host.startswith("*.") and not allow_dns:
            raise CapabilityNotSupported(
                f"{text[:80]!r} needs a name server, which code can use to send data anywhere",
                hint="name each host, or accept that with E2BConfig(allow_dns=True)",
            )
        hosts.append(rule.host)
    listed: dict[str, Any] = {**closed, "allow_out": hosts, "deny_out": [_EVERYWHERE]}
    return {"network": listed if allow_dns else {**listed, "dns_servers": []}}


async def name_hosts(native: AsyncSandbox, policy: NetworkPolicy) -> None:
    """Let the listed names be found without any name server.

    E2B goes by the name that a connection asks for, not by its address, so any address will do.
    """
    lines = "".join(f"{_NO_ROUTE}\t{rule.host}\n" for rule in policy.rules)
    present = await native.files.read(_HOSTS_FILE, format="bytes")
    await native.files.write(_HOSTS_FILE, bytes(present) + b"\n" + lines.encode(), user=_ROOT)  # pyright: ignore[reportUnknownMemberType] -- the SDK's IO
