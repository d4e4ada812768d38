"""Isolation: the same word before and after creation, and no more than it satisfies."""

from __future__ import annotations

import pytest

from sandboxio.errors import ConfigurationError
from sandboxio.models import IsolationTier
from sandboxio.protocols import AsyncSandbox, Backend, IsolationVerifier
from sandboxio.testing.suite.base import SuiteBase

__all__ = ["IsolationTests"]

_REQUIRABLE = tuple(tier for tier in IsolationTier if tier is not IsolationTier.UNKNOWN)


class IsolationTests(SuiteBase):
    """Rows on `IsolationTier`."""

    async def test_a_sandbox_has_the_tier_that_was_promised_before(
        self, sandbox: AsyncSandbox, backend: Backend
    ) -> None:
        promised = backend.isolation
        if isinstance(backend, IsolationVerifier):
            promised = await backend.verify_isolation()
        assert sandbox.isolation is promised

    async def test_a_verified_tier_satisfies_every_weaker_one_and_no_stronger_one(
        self, sandbox: AsyncSandbox
    ) -> None:
        tier = sandbox.isolation
        satisfied = {minimum for minimum in _REQUIRABLE if tier.satisfies(minimum)}
        assert satisfied == {minimum for minimum in _REQUIRABLE if minimum <= tier}

    async def test_an_unknown_tier_cannot_be_required(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(ConfigurationError):
            sandbox.isolation.satisfies(IsolationTier.UNKNOWN)
