"""Which error a failed execution raises, and that a secret is in none of ours."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.errors import ConnectError, PathNotFound, SandboxGone


async def test_a_lost_connection_is_told_apart_from_a_lost_sandbox(make_sandbox):
    sandbox, driver = make_sandbox(OSError("reset"))
    with pytest.raises(ConnectError) as caught:
        await sandbox.run(["prog"])
    assert isinstance(caught.value.__cause__, OSError)
    driver.running = False
    with pytest.raises(SandboxGone):
        await sandbox.run(["prog"])


async def test_a_lost_connection_is_told_even_when_the_provider_is_slow_to_answer(make_sandbox, scripted):
    process = scripted(leader_exits=False)

    async def receive():
        raise OSError("reset")

    process.receive = receive
    sandbox, driver = make_sandbox(process)

    async def alive():
        await anyio.sleep(0.4)
        return True

    driver.alive = alive
    async with sandbox.stream(["prog"], timeout=30) as running:
        with pytest.raises(ConnectError) as first:
            await running.wait()
        with pytest.raises(ConnectError) as second:
            await running.wait()
    assert first.value is second.value


async def test_an_error_of_ours_passes_through_unchanged(make_sandbox):
    error = PathNotFound("the folder /nope does not exist")
    sandbox, _ = make_sandbox(error)
    with pytest.raises(PathNotFound) as caught:
        await sandbox.run(["prog"], cwd="/nope")
    assert caught.value is error


async def test_a_callers_own_error_is_not_altered(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted([b"x"]), secrets={"TOKEN": "s3cr3t"})
    error = ValueError("s3cr3t")
    with pytest.raises(ValueError, match="s3cr3t"):
        async with sandbox.stream(["prog"]):
            raise error


async def test_a_secret_in_a_providers_message_is_redacted_along_the_chain(make_sandbox):
    sandbox, driver = make_sandbox(OSError("bad env TOKEN=s3cr3t"), secrets={"TOKEN": "s3cr3t"})
    with pytest.raises(ConnectError) as caught:
        await sandbox.run(["prog"])
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value.__cause__)
    assert driver.specs[0].env["TOKEN"] == "s3cr3t"
    assert "s3cr3t" not in repr(driver.specs[0])
