"""Egress: denied means denied, and a canary outside the sandbox counts what gets out."""

from __future__ import annotations

import pytest

from sandboxio.errors import CapabilityNotSupported
from sandboxio.models import Capability
from sandboxio.network import NetworkPolicy
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, undeclared, unique
from sandboxio.testing.suite.probes import Canary

__all__ = ["NetworkTests"]


class NetworkTests(SuiteBase):
    """Rows on `NetworkPolicy`."""

    @needs(Capability.NETWORK_POLICY)
    async def test_by_default_nothing_reaches_the_canary(self, backend: Backend) -> None:
        async with self.canary() as canary, await self.create(backend) as sandbox:
            assert not await self._reaches(sandbox, canary)
            assert canary.hits() == 0

    @needs(Capability.NETWORK_POLICY)
    async def test_denied_egress_does_not_reach_the_canary(self, backend: Backend) -> None:
        policy = NetworkPolicy(egress="deny")
        async with self.canary() as canary, await self.create(backend, network=policy) as sandbox:
            assert not await self._reaches(sandbox, canary)
            assert canary.hits() == 0

    @needs(Capability.NETWORK_POLICY)
    async def test_open_egress_reaches_the_canary(self, backend: Backend) -> None:
        policy = NetworkPolicy(egress="allow")
        async with self.canary() as canary, await self.create(backend, network=policy) as sandbox:
            assert await self._reaches(sandbox, canary)
            assert canary.hits() > 0

    @needs(Capability.NETWORK_POLICY)
    async def test_one_sandboxs_open_egress_opens_no_other(self, backend: Backend) -> None:
        policy = NetworkPolicy(egress="allow")
        async with (
            self.canary() as canary,
            await self.create(backend, network=policy),
            await self.create(backend) as closed,
        ):
            assert not await self._reaches(closed, canary)
            assert canary.hits() == 0

    @needs(Capability.NETWORK_ALLOWLIST)
    async def test_a_listed_destination_is_reached(self, backend: Backend) -> None:
        async with self.canary() as canary:
            listed = f"{canary.host}:{canary.port}" if self.allowlist_ports_supported else canary.host
            policy = NetworkPolicy(allow=(listed,))
            async with await self.create(backend, network=policy) as sandbox:
                assert await self._reaches(sandbox, canary)
                assert canary.hits() > 0

    @needs(Capability.NETWORK_ALLOWLIST)
    async def test_a_destination_that_is_not_listed_is_not_reached(self, backend: Backend) -> None:
        policy = NetworkPolicy(allow=("listed.invalid",))
        async with self.canary() as canary, await self.create(backend, network=policy) as sandbox:
            assert not await self._reaches(sandbox, canary)
            assert canary.hits() == 0

    @needs(Capability.NETWORK_ALLOWLIST)
    async def test_a_port_that_is_not_listed_is_not_reached(self, backend: Backend) -> None:
        if not self.allowlist_ports_supported:
            pytest.skip("egress is filtered by host alone")
        async with self.canary() as canary:
            policy = NetworkPolicy(allow=(f"{canary.host}:{canary.port % 65535 + 1}",))
            async with await self.create(backend, network=policy) as sandbox:
                assert not await self._reaches(sandbox, canary)
                assert canary.hits() == 0

    @needs(Capability.NETWORK_ALLOWLIST)
    async def test_a_port_that_cannot_be_filtered_is_refused_and_creates_nothing(
        self, backend: Backend
    ) -> None:
        if self.allowlist_ports_supported:
            pytest.skip("ports are filtered here")
        await self._refuses(backend, NetworkPolicy(allow=("example.org:8443",)), "port")

    @undeclared(Capability.NETWORK_ALLOWLIST)
    async def test_a_list_that_cannot_be_enforced_is_refused_and_creates_nothing(
        self, backend: Backend
    ) -> None:
        await self._refuses(backend, NetworkPolicy(allow=("example.org",)), "NETWORK_ALLOWLIST")

    @needs(Capability.NETWORK_POLICY)
    async def test_the_allow_list_is_declared_as_the_suite_was_told(self, backend: Backend) -> None:
        declared = Capability.NETWORK_ALLOWLIST in backend.capabilities
        assert declared is self.allowlist_supported

    @needs(Capability.EGRESS_LEARN)
    async def test_learning_egress_denies_like_deny(self, backend: Backend) -> None:
        policy = NetworkPolicy(egress="learn")
        async with self.canary() as canary, await self.create(backend, network=policy) as sandbox:
            assert not await self._reaches(sandbox, canary)
            assert canary.hits() == 0

    @undeclared(Capability.EGRESS_LEARN)
    async def test_learning_egress_that_is_not_declared_is_refused_and_creates_nothing(
        self, backend: Backend
    ) -> None:
        await self._refuses(backend, NetworkPolicy(egress="learn"), "EGRESS_LEARN")

    @undeclared(Capability.TUNNELS)
    async def test_ingress_that_is_not_declared_is_refused_and_creates_nothing(
        self, backend: Backend
    ) -> None:
        await self._refuses(backend, NetworkPolicy(ingress_ports=(8080,)), "TUNNELS")

    @undeclared(Capability.NETWORK_POLICY)
    async def test_a_backend_without_a_network_policy_refuses_to_create(self, backend: Backend) -> None:
        await self._refuses(backend, NetworkPolicy(egress="allow"), "NETWORK_POLICY")

    async def _refuses(self, backend: Backend, policy: NetworkPolicy, flag: str) -> None:
        labels = {"purpose": unique("refused")}
        with pytest.raises(CapabilityNotSupported, match=flag):
            await self.create(backend, network=policy, metadata=labels)
        assert await self.count_sandboxes(backend, labels) == 0

    async def _reaches(self, sandbox: AsyncSandbox, canary: Canary) -> bool:
        if Capability.RUN_COMMAND in sandbox.capabilities:
            result = await sandbox.run(self.cmd_connect(canary.host, canary.port), timeout=30)
        else:
            result = await sandbox.run_code(self.code_connect(canary.host, canary.port), timeout=30)
        return "reached" in result.stdout
