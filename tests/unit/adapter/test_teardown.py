"""How a sandbox ends, and what is told when it cannot be ended."""

from __future__ import annotations

import warnings

import anyio
import pytest

from sandboxio.errors import ConnectError, OrphanedSandboxWarning, SandboxGone


async def test_leaving_an_owned_sandbox_ends_it_and_a_connected_one_never(make_sandbox):
    for owned in (True, False):
        sandbox, driver = make_sandbox(owned=owned)
        async with sandbox:
            pass
        assert driver.destroyed == int(owned)
        assert driver.closed >= 1


async def test_a_detached_sandbox_outlives_its_context(make_sandbox):
    sandbox, driver = make_sandbox()
    async with sandbox:
        assert await sandbox.detach() == "box-1"
    assert (driver.detached, driver.destroyed) == (1, 0)


async def test_kill_twice_destroys_once(make_sandbox):
    sandbox, driver = make_sandbox()
    await sandbox.kill()
    await sandbox.kill()
    assert driver.destroyed == 1
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_a_refused_kill_names_the_way_out(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.raises(ConnectError) as caught:
        await sandbox.kill()
    assert "sandboxio reap --kill" in caught.value.hint


async def test_a_kill_that_does_not_end_in_time_is_an_error(make_sandbox, sink, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    sandbox, driver = make_sandbox()
    driver.destroy = anyio.sleep_forever
    with pytest.raises(ConnectError, match="SBX_TEARDOWN_GRACE"):
        await sandbox.kill()
    assert [event.error_code for event in sink.events] == ["SBX_E1202"]


async def test_a_teardown_that_fails_warns_and_keeps_the_callers_error(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.warns(OrphanedSandboxWarning), pytest.raises(ZeroDivisionError):
        async with sandbox:
            raise ZeroDivisionError


async def test_a_slow_teardown_warns_instead_of_hanging(make_sandbox, monkeypatch):
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    sandbox, driver = make_sandbox()
    driver.destroy = anyio.sleep_forever
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with anyio.fail_after(5):
            async with sandbox:
                pass
    assert [entry.category for entry in caught] == [OrphanedSandboxWarning]


async def test_a_warning_made_an_error_replaces_no_error(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError) as caught:
            async with sandbox:
                raise ZeroDivisionError
    assert "may still run" in caught.value.__notes__[0]


async def test_a_sandbox_whose_end_was_refused_still_gives_local_resources_back(make_sandbox):
    sandbox, driver = make_sandbox()
    driver.destroy_error = RuntimeError("refused")
    with pytest.warns(OrphanedSandboxWarning):
        async with sandbox:
            pass
    assert driver.closed == 1
