"""`sandboxio demo`: a sandbox from its creation to its end, each step with its time."""

from __future__ import annotations

import argparse
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET, KNOWN_BACKENDS
from sandboxio.cli.output import Output, printable

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox

__all__ = ["DESCRIPTION", "SUMMARY", "configure", "run"]

SUMMARY: Final = "run code in a sandbox and show each step with its time"
DESCRIPTION: Final = (
    "Create a sandbox, run code in it, stream output, try to reach the internet from inside, and "
    "end it. The sandbox is gone afterwards, also after an interruption."
)

LIFETIME_SECONDS: Final = 120
CODE: Final = "print('hello from the sandbox')"
STREAMED: Final = "echo one; sleep 0.2; echo two; sleep 0.2; echo three"
PROBED_HOST: Final = "1.1.1.1"
PROBED_PORT: Final = 443
PROBE: Final = (
    "import socket\n"
    f"socket.create_connection(({PROBED_HOST!r}, {PROBED_PORT}), timeout=3).close()\n"
    "print('reached')\n"
)
# How Python tells that a connection could not be opened; any other end of the probe proves nothing.
REFUSALS: Final = ("OSError", "ConnectionError", "ConnectionRefusedError", "PermissionError", "TimeoutError")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--backend",
        metavar="DSN",
        default=f"{DEFAULT_BACKEND}://",
        help=f"where to create it, such as {EXAMPLE_TARGET}; the default is %(default)s",
    )


def run(arguments: argparse.Namespace, output: Output) -> bool:
    """Run all steps and say whether each one went as it should."""
    import anyio

    from sandboxio import BackendNotInstalled

    try:
        return anyio.run(_demo, arguments.backend, output)
    except BackendNotInstalled:
        known = KNOWN_BACKENDS.get(arguments.backend.partition(":")[0])
        if known is not None and known.one_shot_command is not None:
            output.note(f"Nothing is installed by: {known.one_shot_command}")
            output.document["one_shot_command"] = known.one_shot_command
        raise


async def _demo(target: str, output: Output) -> bool:
    import sandboxio

    steps = _Steps(output)
    with steps.step("create") as step:
        sandbox = await sandboxio.create(target, timeout=LIFETIME_SECONDS)
        step["detail"] = f"{sandbox.backend} {sandbox.id[:12]}, isolation {sandbox.isolation.value}"
    async with sandbox:
        with steps.step("run") as step:
            result = (await sandbox.run_code(CODE)).raise_for_status()
            step["detail"] = result.stdout.strip()
        with steps.step("stream") as step:
            step["detail"] = await _stream(sandbox)
        with steps.step("egress") as step:
            step["ok"], step["detail"] = await _probe_egress(sandbox)
        with steps.step("teardown") as step:
            await sandbox.kill()
            step["detail"] = "nothing is left"
    return steps.ok


async def _stream(sandbox: AsyncSandbox) -> str:
    """The lines of the streamed command, each with the time at which it came."""
    arrivals: list[str] = []
    started = time.perf_counter()
    async with sandbox.stream(STREAMED) as process:
        async for chunk in process:
            words = " ".join(chunk.data.decode(errors="replace").split())
            arrivals.append(f"{words} after {(time.perf_counter() - started) * 1000:.0f} ms")
        (await process.wait()).raise_for_status()
    return ", ".join(arrivals)


async def _probe_egress(sandbox: AsyncSandbox) -> tuple[bool, str]:
    """Whether an attempt to reach the internet was refused, and how that looked from inside."""
    result = await sandbox.run_code(PROBE)
    if result.ok:
        return False, f"{PROBED_HOST}:{PROBED_PORT} was reached, which the policy forbids"
    lines = result.stderr.strip().splitlines() or ["no reason was given"]
    refused = lines[-1].partition(":")[0].rpartition(".")[2] in REFUSALS
    return refused, f"{PROBED_HOST}:{PROBED_PORT} {'denied' if refused else 'not tried'}: {lines[-1]}"


class _Steps:
    """Prints each step as it ends, and collects them for the document."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._steps: list[dict[str, Any]] = []
        output.document["steps"] = self._steps

    @property
    def ok(self) -> bool:
        return all(step["ok"] for step in self._steps)

    @contextmanager
    def step(self, name: str) -> Generator[dict[str, Any]]:
        step: dict[str, Any] = {"name": name, "ok": False, "duration_ms": 0, "detail": ""}
        self._steps.append(step)
        started = time.perf_counter()
        try:
            step["ok"] = True
            yield step
        except BaseException:
            step["ok"] = False
            raise
        finally:
            step["duration_ms"] = round((time.perf_counter() - started) * 1000)
            self._print(step)

    def _print(self, step: dict[str, Any]) -> None:
        word = self._output.styled("ok  ", "good") if step["ok"] else self._output.styled("FAIL", "bad")
        self._output.line(
            f"{word} {step['name']:<9}{step['duration_ms']:>6} ms  {printable(step['detail'])}".rstrip()
        )
