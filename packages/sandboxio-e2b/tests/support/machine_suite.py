"""What tests of machines say and ask."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from e2b_server.machine import DockerMachine, DockerMachines
from e2b_server.ports import Egress, Ended, Machine, MachineError, Process, ProcessConfig
from e2b_server.proxy import Incomplete, host_header, server_name

MIB = 2**20
CLOSED = Egress(open=False)


async def boot(
    egress: Egress = CLOSED, envs: Mapping[str, str] | None = None, names: Mapping[str, str] | None = None
) -> Machine:
    return await DockerMachines(names)(template="base", envs=envs or {}, egress=egress, lifetime=120)


def shell(script: str, *, cwd: str | None = None, **envs: str) -> ProcessConfig:
    return ProcessConfig("/bin/bash", ("-c", script), envs, cwd)


async def collect(process: Process) -> tuple[bytes, bytes, Ended]:
    written = {"stdout": bytearray(), "stderr": bytearray()}
    async for event in process.events():
        if isinstance(event, Ended):
            return bytes(written["stdout"]), bytes(written["stderr"]), event
        written[event.stream] += event.data
    raise AssertionError("the events ended without an end")


async def output(machine: Machine, script: str) -> str:
    out, err, end = await collect(await machine.start(shell(script), stdin=False))
    assert end == Ended(0, True, "exit status 0"), err.decode()
    return out.decode()


async def until(condition: Any, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


async def refused(code: str, action: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await action
    assert caught.value.code == code
    return caught.value.message


async def pieces(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def content(machine: Machine, path: str) -> bytes:
    return b"".join([piece async for piece in machine.files.read(path)])


async def execute(
    machine: Machine, context: str, code: str, envs: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    return [dict(message) async for message in machine.kernels.execute(context, code, envs or {})]


def texts(messages: Sequence[Mapping[str, Any]], kind: str) -> str:
    return "".join(message["text"] for message in messages if message["type"] == kind)


def one(messages: Sequence[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    (found,) = [message for message in messages if message["type"] == kind]
    return found


async def begin(machine: Machine, context: str, code: str) -> Any:
    """A cell that runs: it has written that it has begun."""
    messages = machine.kernels.execute(context, code, {})
    async for message in messages:
        if message.get("text", "").startswith("begun"):
            return messages
    raise AssertionError("the cell wrote nothing")


def container_of(machine: Machine) -> str:
    assert isinstance(machine, DockerMachine)
    return machine.id


@dataclass
class Canary:
    """A host outside of every machine that remembers who reached it."""

    address: str
    reached: list[tuple[int, str]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        head = await reader.read(65536)
        look = server_name if port == 443 else host_header
        with contextlib.suppress(Incomplete):
            self.reached.append((port, look(head) or ""))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary")
        writer.close()
