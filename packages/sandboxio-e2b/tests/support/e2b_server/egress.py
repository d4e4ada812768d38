"""What a machine may reach, enforced by packet filter rules in its network namespace and by a proxy.

The rules are set from outside with `nsenter`, so they take root on the engine's own host.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import Any, Final

from .ports import Egress, MachineError
from .proxy import NameProxy

__all__ = ["Filter", "unavailable"]

_PROGRAMS: Final = ("nsenter", "iptables-restore", "ip6tables-restore")
_FILTER_V6: Final = (
    "*filter\n:INPUT DROP\n:FORWARD DROP\n:OUTPUT {policy}\n-A OUTPUT -o lo -j ACCEPT\nCOMMIT\n"
)


def unavailable() -> str | None:
    """Why egress cannot be narrowed down on this host, if it cannot."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is missing"
    return None if os.geteuid() == 0 else "it takes root"


@dataclass(frozen=True)
class _Place:
    """Where a machine's network is."""

    pid: int
    address: str
    gateway: str
    hosts_file: Path

    @classmethod
    def of(cls, inspected: Mapping[str, Any]) -> _Place:
        network = inspected["NetworkSettings"]["Networks"]["bridge"]
        return cls(
            inspected["State"]["Pid"],
            network["IPAddress"],
            network["Gateway"],
            Path(inspected["HostsPath"]),
        )


class Filter:
    """The egress of one machine.

    Args:
        inspected: The engine's description of the running container, which has a network.
        names: Addresses of names that no resolver knows. The proxy knows them always; the machine itself
            only while its egress is open, since elsewhere nobody tells it a name's address.
    """

    def __init__(self, inspected: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self._place = _Place.of(inspected)
        self._names = names
        self._proxy: NameProxy | None = None

    async def apply(self, egress: Egress) -> None:
        """Put rules in force in place of those before. Connections that they do not cover are cut.

        Raises:
            MachineError: An address is none, or the rules cannot be set.
        """
        networks = [_network(text) for text in egress.addresses]
        old, self._proxy = self._proxy, None
        if not egress.open and egress.hosts:
            self._proxy = await NameProxy.start(
                egress.hosts, self._names, address=self._place.gateway, client=self._place.address
            )
        self._name_hosts(known=egress.open)
        try:
            await self._restore("ip6tables-restore", _FILTER_V6.format(policy="DROP"))
            await self._restore("iptables-restore", _rules(egress, networks, self._place, self._proxy))
        finally:
            if old is not None:
                await old.close()

    def _name_hosts(self, *, known: bool) -> None:
        """Whether the machine's own file of names holds ours. It is written in place, as it is mounted."""
        if self._names:
            ours = "".join(f"{address}\t{name}\n" for name, address in self._names.items())
            others = self._place.hosts_file.read_text(encoding="utf-8").replace(ours, "")
            self._place.hosts_file.write_text(others + (ours if known else ""), encoding="utf-8")

    async def close(self) -> None:
        """Close the proxy; the rules go with the machine."""
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.close()

    async def _restore(self, program: str, rules: str) -> None:
        process = await asyncio.create_subprocess_exec(
            "nsenter",
            "--target",
            str(self._place.pid),
            "--net",
            program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await process.communicate(rules.encode())
        if process.returncode:
            raise MachineError("internal", f"{program}: {errors.decode('utf-8', 'replace').strip()}")


def _network(text: str) -> IPv4Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise MachineError("invalid_argument", f"{text!r} is no address") from None
    if not isinstance(network, IPv4Network):
        raise MachineError("invalid_argument", f"{text!r}: machines have no IPv6")
    return network


def _rules(egress: Egress, networks: Sequence[IPv4Network], place: _Place, proxy: NameProxy | None) -> str:
    """Every packet is judged by where it goes, so a rule that is gone cuts what it had let through."""
    policy = "ACCEPT" if egress.open else "DROP"
    filters = ["*filter", ":INPUT ACCEPT", ":FORWARD DROP", f":OUTPUT {policy}"]
    nat = ["*nat", ":PREROUTING ACCEPT", ":INPUT ACCEPT", ":OUTPUT ACCEPT", ":POSTROUTING ACCEPT"]
    if not egress.open:
        filters.append("-A OUTPUT -o lo -j ACCEPT")
        for network in networks:
            filters.append(f"-A OUTPUT -d {network} -j ACCEPT")
            nat.append(f"-A OUTPUT -d {network} -j ACCEPT")
        filters.append("-A OUTPUT -j REJECT")
    if proxy is not None:
        for port, own in ((80, proxy.http_port), (443, proxy.tls_port)):
            filters.insert(-1, f"-A OUTPUT -p tcp -d {place.gateway} --dport {own} -j ACCEPT")
            nat.append(
                f"-A OUTPUT ! -o lo -p tcp --dport {port} -j DNAT --to-destination {place.gateway}:{own}"
            )
    return "\n".join([*filters, "COMMIT", *nat, "COMMIT", ""])
