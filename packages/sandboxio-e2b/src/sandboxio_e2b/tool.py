"""Running a program of the sandbox on this adapter's own behalf."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio

from sandboxio.adapter.driver import ProcessSpec
from sandboxio.errors import ConnectError
from sandboxio.models import OutputChunk
from sandboxio_e2b.process import E2BProcesses

__all__ = ["run_tool"]

_REASON_LIMIT: Final = 16 * 1024
_END_SECONDS: Final = 5.0


async def run_tool(processes: E2BProcesses, spec: ProcessSpec) -> tuple[int, str]:
    """Run a program to its end; its tree is ended if the call is cut off.

    Returns:
        Its exit code, and what it wrote to standard error.

    Raises:
        ConnectError: Its exit code is not known.
    """
    process = await processes.start(spec)
    reason = bytearray()
    ended = False
    try:
        while (chunk := await process.receive()) is not None:
            if isinstance(chunk, OutputChunk) and chunk.stream == "stderr" and len(reason) < _REASON_LIMIT:
                reason += chunk.data
        code = (await process.wait()).code
        ended = True
    finally:
        with anyio.CancelScope(shield=True):
            if not ended:
                with anyio.move_on_after(_END_SECONDS), suppress(Exception):
                    await process.kill()
            await process.aclose()
    if code is None:
        raise ConnectError("the exit code of a file operation is unknown", hint="try it again")
    return code, reason.decode("utf-8", "replace")
