"""Commands and cells on E2B, against the bare SDK on the same local server, and many at once."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from e2b_code_interpreter import AsyncSandbox

import sandboxio
from benchmarks.rounds import Row, compare

LIMIT = 1.1
BUILTIN_LIMIT = 1.35  # a shell of its own, so that it can be ended, against none
AT_ONCE = 100
SANDBOXES = 50
SERVER = Path(__file__).parents[1] / "packages" / "sandboxio-e2b" / "tests" / "support"
CODE = "sum(range(10))"
COMMAND = ["python3", "-c", "print(6 * 7)"]


async def measure() -> list[Row]:
    """A command and a cell, then many commands in one sandbox and many sandboxes."""
    with local_server():
        native = await AsyncSandbox.create(timeout=600)
        try:
            async with sandboxio.create("e2b://", timeout=600) as sandbox:
                rows = await _compare(sandbox, native)
                rows.append(await _commands_at_once(sandbox))
        finally:
            await native.kill()
        rows.append(await _sandboxes_at_once())
        return rows


@contextmanager
def local_server() -> Iterator[None]:
    """A server in a process of its own, and the variables that lead the SDK to it."""
    command = [sys.executable, "-m", "e2b_server"]
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        for _ in range(3):
            name, _, value = server.stdout.readline().strip().partition("=")
            os.environ[name] = value
        try:
            yield
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait(60)


async def _compare(sandbox: sandboxio.AsyncSandbox, native: AsyncSandbox) -> list[Row]:
    async def run() -> None:
        assert (await sandbox.run(COMMAND)).stdout == "42\n"

    async def run_bare() -> None:
        assert (await native.commands.run(shlex.join(COMMAND))).stdout == "42\n"

    async def nothing() -> None:
        assert (await sandbox.run("true")).ok

    async def nothing_bare() -> None:
        assert (await native.commands.run("true")).exit_code == 0

    async def cell() -> None:
        (result,) = (await sandbox.run_code(CODE)).results or ()
        assert result.data == "45"

    async def cell_bare() -> None:
        """A context of its own, since ours starts clean."""
        context = await native.create_code_context()
        assert (await native.run_code(CODE, context=context)).results[0].text == "45"
        await native.remove_code_context(context.id)

    return [
        await compare("E2B, run python3", run, run_bare, rounds=301, limit=LIMIT),
        await compare("E2B, run a shell's builtin", nothing, nothing_bare, rounds=201, limit=BUILTIN_LIMIT),
        await compare("E2B, run_code", cell, cell_bare, rounds=301, limit=LIMIT),
    ]


async def _commands_at_once(sandbox: sandboxio.AsyncSandbox) -> Row:
    failures: list[Exception] = []

    async def command(number: int) -> None:
        try:
            assert (await sandbox.run(f"sleep 0.2; echo {number}")).stdout == f"{number}\n"
        except Exception as exc:
            failures.append(exc)

    return await _at_once(f"E2B, {AT_ONCE} commands at once, failures", AT_ONCE, command, failures)


async def _sandboxes_at_once() -> Row:
    failures: list[Exception] = []

    async def whole_life(number: int) -> None:
        try:
            async with sandboxio.create("e2b://", timeout=300) as sandbox:
                assert (await sandbox.run(f"echo {number}")).stdout == f"{number}\n"
        except Exception as exc:
            failures.append(exc)

    return await _at_once(f"E2B, {SANDBOXES} sandboxes at once, failures", SANDBOXES, whole_life, failures)


async def _at_once(what: str, count: int, action: Any, failures: list[Exception]) -> Row:
    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(action, number)
    seconds = time.perf_counter() - started
    note = f"{count} of them in {seconds:.1f} s{f', such as {failures[0]!r}' if failures else ''}"
    return Row(what, len(failures), 0, "", note)
