"""The fake of an unknown tier passes the contract, and the tier satisfies nothing."""

from __future__ import annotations

from sandboxio.audit import AuditConfig
from sandboxio.models import IsolationTier
from sandboxio.testing.fake import FakeConfig
from sandboxio.testing.fake.contract import FakeContractSuite


class TestUnknownFake(FakeContractSuite):
    def config_for(self, audit: AuditConfig) -> FakeConfig:
        return FakeConfig(isolation=IsolationTier.UNKNOWN, audit=audit)
