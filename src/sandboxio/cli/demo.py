"""`sandboxio demo`: a sandbox from its creation to its end, each step with its time."""

from __future__ import annotations

import argparse
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET, KNOWN_BACKENDS
from sandboxio.cli.arguments import add_backend
from sandboxio.cli.exit_codes import FAILURE, OK
from sandboxio.cli.interruption import run_to_end
from sandboxio.cli.output import Output, printable
from sandboxio.cli.progress import waiting
from sandboxio.cli.selection import Selection, select_backend

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox

__all__ = ["DESCRIPTION", "EXAMPLES", "FAILED", "SUMMARY", "configure", "run"]

SUMMARY: Final = "run code in a sandbox and show each step with its time"
DESCRIPTION: Final = (
    "Create a sandbox, run code in it, stream output, try to reach the internet from inside, and "
    "end it. The sandbox is gone afterwards, also after an interruption. It takes the first "
    "installed backend that works, and says which."
)
EXAMPLES: Final = f"""\
  sandboxio demo
  sandboxio demo --json
  sandboxio demo --backend "{EXAMPLE_TARGET}\""""
FAILED: Final = FAILURE

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
    add_backend(parser, default="the first installed one that works is used")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run all steps; the code says whether each one went as it should."""
    from sandboxio import BackendNotInstalled

    try:
        ok = run_to_end(lambda: _demo(arguments.backend, output), on_signal=output.note)
    except BackendNotInstalled as exc:
        output.error(exc)
        _offer_one_shot((arguments.backend or DEFAULT_BACKEND).partition(":")[0], output)
        return FAILED
    return OK if ok else FAILED


def _offer_one_shot(name: str, output: Output) -> None:
    known = KNOWN_BACKENDS.get(name)
    if known is not None and known.one_shot_command is not None:
        output.note(f"Or without installing anything: {known.one_shot_command}")
        output.document["one_shot_command"] = known.one_shot_command


async def _demo(target: str | None, output: Output) -> bool:
    import sandboxio

    with waiting("looking for a backend"):
        chosen = await select_backend() if target is None else Selection(target, "it was asked for")
    output.document.update(target=chosen.target, reason=chosen.reason)
    output.line(f"backend {output.styled(printable(chosen.target), 'strong')}: {printable(chosen.reason)}")
    steps = _Steps(output)
    async with AsyncExitStack() as stack:
        with steps.step("create") as step, waiting("creating a sandbox"):
            sandbox = await stack.enter_async_context(
                sandboxio.create(chosen.target, timeout=LIFETIME_SECONDS)
            )
            step["detail"] = f"{sandbox.backend} {sandbox.id[:12]}, isolation {sandbox.isolation.value}"
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
