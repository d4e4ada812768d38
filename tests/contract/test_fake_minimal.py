"""The fake that declares next to nothing refuses the rest, as the contract says."""

from __future__ import annotations

from typing import ClassVar

from sandboxio.audit import AuditConfig
from sandboxio.models import Capability
from sandboxio.testing.fake import FakeConfig
from sandboxio.testing.fake.contract import FakeContractSuite, FakeProbes
from sandboxio.testing.suite.network import NetworkTests


class TestMinimalFake(FakeContractSuite):
    allowlist_supported: ClassVar[bool] = False

    def config_for(self, audit: AuditConfig) -> FakeConfig:
        declared = Capability.RUN_COMMAND | Capability.NETWORK_POLICY
        return FakeConfig(capabilities=declared, audit=audit)


class TestFakeWithoutNetworkPolicy(FakeProbes, NetworkTests):
    allowlist_supported: ClassVar[bool] = False

    def config_for(self, audit: AuditConfig) -> FakeConfig:
        return FakeConfig(capabilities=Capability.RUN_COMMAND, audit=audit)
