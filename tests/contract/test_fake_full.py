"""The fake that declares all it can do passes the contract."""

from __future__ import annotations

from sandboxio.testing.fake.contract import FakeContractSuite


class TestFullFake(FakeContractSuite):
    pass
