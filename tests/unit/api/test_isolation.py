"""A required isolation tier is reached, or there is no sandbox."""

from __future__ import annotations

import anyio
import pytest

import sandboxio
from sandboxio import (
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    IsolationTier,
    OrphanedSandboxWarning,
)

from .recording import RecordingBackend, VerifyingBackend, ready_backend, the_backend


async def test_a_tier_is_checked_before_anything_is_provisioned() -> None:
    with pytest.raises(CapabilityNotSupported, match=r"tier CONTAINER.*asks for GVISOR") as caught:
        await sandboxio.create("recording://", require_isolation=IsolationTier.GVISOR)
    assert "GVISOR" in caught.value.hint
    assert the_backend().log == []


async def test_a_tier_that_is_reached_is_fine() -> None:
    await sandboxio.create("recording://", require_isolation=IsolationTier.CONTAINER)
    assert the_backend().log == ["create"]


async def test_the_provider_is_asked_where_it_knows_better() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    recording.given_isolation = IsolationTier.GVISOR
    await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert recording.log == ["verify", "create"]


async def test_the_provider_is_not_asked_when_nothing_is_required() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    await sandboxio.create(backend)
    assert recording.log == ["create"]


async def test_unknown_cannot_be_required() -> None:
    with pytest.raises(ConfigurationError, match="UNKNOWN"):
        await sandboxio.create("recording://", require_isolation=IsolationTier.UNKNOWN)
    assert RecordingBackend.made == []


async def test_a_sandbox_that_falls_short_is_ended() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    with pytest.raises(CapabilityNotSupported, match="sandbox-1 gives the isolation tier CONTAINER"):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert recording.log == ["verify", "create", "kill"]


async def test_one_that_cannot_be_ended_is_told() -> None:
    recording, backend = ready_backend(VerifyingBackend)

    async def refuse() -> None:
        raise ConnectError("the provider refused")

    recording.kill = refuse  # type: ignore[method-assign]
    with (
        pytest.warns(OrphanedSandboxWarning, match=r"sandbox-1 may still run.*the provider refused"),
        pytest.raises(CapabilityNotSupported),
    ):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)


async def test_one_whose_end_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    recording, backend = ready_backend(VerifyingBackend)
    recording.kill = anyio.sleep_forever  # type: ignore[method-assign]
    with pytest.warns(OrphanedSandboxWarning, match="too long"), pytest.raises(CapabilityNotSupported):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)


async def test_one_that_fails_to_end_in_a_foreign_way_is_told() -> None:
    recording, backend = ready_backend(VerifyingBackend)

    async def break_down() -> None:
        raise ValueError("token=hunter2")

    recording.kill = break_down  # type: ignore[method-assign]
    with (
        pytest.warns(OrphanedSandboxWarning, match="ending it failed: ValueError") as warned,
        pytest.raises(CapabilityNotSupported),
    ):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert "hunter2" not in str(warned[0].message)


async def test_a_connected_sandbox_that_falls_short_is_left_as_it_is() -> None:
    with pytest.raises(CapabilityNotSupported, match="asks for MICROVM"):
        await sandboxio.connect("recording://", "abc", require_isolation=IsolationTier.MICROVM)
    assert the_backend().log == ["connect abc", "enter", "exit"]
