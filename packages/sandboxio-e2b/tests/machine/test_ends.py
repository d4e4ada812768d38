"""A machine ends whole, and is one of many."""

from __future__ import annotations

import asyncio
import os

import docker
import pytest
from e2b_server.ports import Egress, MachineError
from machine_suite import (
    Canary,
    begin,
    boot,
    container_of,
    content,
    pieces,
    refused,
    shell,
    until,
)

pytestmark = pytest.mark.docker


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_shutdown_leaves_nothing(canary: Canary) -> None:
    async def live(once: int) -> str:
        machine = await boot(
            Egress(open=False, hosts=("canary.test",)), names={"canary.test": canary.address}
        )
        process = await machine.start(shell("sleep 300"), stdin=True)
        events = process.events()
        context = await machine.kernels.open("python", None)
        cell = await begin(machine, context.id, "import time; print('begun'); time.sleep(300)")
        await machine.shutdown()
        await machine.shutdown()
        with pytest.raises(MachineError):
            await anext(events)
        with pytest.raises(MachineError):
            await anext(cell)
        await refused("unavailable", machine.files.stat("."))
        return container_of(machine)

    await live(0)
    before, tasks = descriptors(), len(asyncio.all_tasks())
    ended = await live(1)

    async def as_before() -> bool:
        return descriptors() <= before and len(asyncio.all_tasks()) <= tasks

    await until(as_before)
    engine = docker.from_env()
    assert ended not in [container.id for container in engine.containers.list(all=True)]
    engine.close()


async def test_a_machine_that_ends_by_itself_tells_its_listeners() -> None:
    machine = await boot()
    process = await machine.start(shell("sleep 300"), stdin=False)
    events = process.events()
    engine = docker.from_env()
    engine.containers.get(container_of(machine)).kill()
    engine.close()
    with pytest.raises(MachineError) as caught:
        await anext(events)
    assert caught.value.code == "unavailable"
    await machine.shutdown()


async def test_several_machines_live_at_once() -> None:
    machines = await asyncio.gather(*(boot() for _ in range(6)))
    try:
        for number, each in enumerate(machines):
            await each.files.write("mine", pieces(str(number).encode()))
        read = await asyncio.gather(*(content(each, "mine") for each in machines))
        assert read == [str(number).encode() for number in range(6)]
    finally:
        await asyncio.gather(*(each.shutdown() for each in machines))
