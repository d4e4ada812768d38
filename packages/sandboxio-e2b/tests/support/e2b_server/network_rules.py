"""The network part of a request, checked as the service checks it and turned into `Egress`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from .ports import Egress
from .schema import Malformed

__all__ = ["ALL_TRAFFIC", "egress_from"]

ALL_TRAFFIC = "0.0.0.0/0"

_MOST_SERVERS = 10
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(\*\.)?({_LABEL}\.)*{_LABEL}")


DEFAULT_NAME_SERVER = "8.8.8.8"


def egress_from(
    *,
    allow_internet_access: bool | None,
    allow_out: Sequence[str],
    deny_out: Sequence[str],
    dns_servers: Sequence[str] | None = None,
) -> Egress:
    """What these rules let out. Where a name is allowed, so is all that goes to the name servers.

    Raises:
        Malformed: A name among the denied, names allowed without everything else denied, an entry that
            is neither name nor address, or a denial that this server cannot keep.
    """
    hosts = [entry.lower() for entry in allow_out if not _is_address(entry)]
    for host in hosts:
        if not _NAME.fullmatch(host):
            raise Malformed(f"invalid allow out entry {host!r}")
    for entry in deny_out:
        if not _is_address(entry):
            raise Malformed(f"invalid denied CIDR {entry!r}: domain names cannot be denied")
    if hosts and ALL_TRAFFIC not in deny_out:
        raise Malformed(
            "when specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out "
            "to block all other traffic"
        )
    servers = [DEFAULT_NAME_SERVER] if dns_servers is None else dns_servers
    if len(servers) > _MOST_SERVERS or not all(_is_ipv4(server) for server in servers):
        raise Malformed(f"DNS servers must be at most {_MOST_SERVERS} IPv4 addresses")
    closed = allow_internet_access is False or ALL_TRAFFIC in deny_out
    if deny_out and not closed:
        raise Malformed(f"deny out: this server can deny {ALL_TRAFFIC} only")
    if not closed:
        return Egress(open=True)
    addresses = [entry for entry in allow_out if _is_address(entry)]
    if hosts:
        addresses += servers
    return Egress(open=ALL_TRAFFIC in addresses, hosts=tuple(hosts), addresses=tuple(addresses))


def _is_address(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return True


def _is_ipv4(entry: str) -> bool:
    try:
        ipaddress.IPv4Address(entry)
    except ValueError:
        return False
    return True
