"""Running a program of the sandbox on this adapter's own behalf."""

from __future__ import annotations

import math
from typing import Final

from sandboxio.adapter.driver import ProcessSpec
from sandboxio.errors import ConnectError
from sandboxio.models import OutputChunk
from sandboxio.release import uninterrupted
from sandboxio_e2b.process import E2BProcesses

__all__ = ["run_tool"]

_REASON_LIMIT: Final = 16 * 1024


async def run_tool(processes: E2BProcesses, command: tuple[str, ...]) -> tuple[int, str]:
    """Run a program in `/` to its end; its tree is ended if the call is cut off, which bounds it.

    Returns:
        Its exit code, and what it wrote to standard error.

    Raises:
        ConnectError: Its exit code is not known.
    """
    process = await processes.start(ProcessSpec(command, {}, "/", open_stdin=False, timeout=math.inf))
    reason = bytearray()
    ended = False

    async def release() -> None:
        if not ended:
            await processes.end_or_destroy(process)
        await process.aclose()

    try:
        while (chunk := await process.receive()) is not None:
            if isinstance(chunk, OutputChunk) and chunk.stream == "stderr" and len(reason) < _REASON_LIMIT:
                reason += chunk.data
        code = (await process.wait()).code
        ended = True
    finally:
        await uninterrupted(release)
    if code is None:
        raise ConnectError("the exit code of a file operation is unknown", hint="try it again")
    return code, reason.decode("utf-8", "replace")
