"""Running a program of the sandbox on this adapter's own behalf."""

from __future__ import annotations

import math
from typing import Final

from sandboxio.adapter.driver import ProcessSpec
from sandboxio.errors import ConnectError, FileSystemError
from sandboxio.models import OutputChunk
from sandboxio.release import uninterrupted
from sandboxio_e2b.file_errors import tool_error
from sandboxio_e2b.process import E2BProcesses

__all__ = ["run_tool"]

_REASON_LIMIT: Final = 16 * 1024


async def run_tool(
    processes: E2BProcesses, path: str, command: tuple[str, ...], *, output_limit: int = 0
) -> bytes:
    """Run a program in `/` to its end; its tree is ended if the call is cut off, which bounds it.

    Args:
        processes: What starts it.
        path: What the operation is about, for messages.
        command: The program and its arguments.
        output_limit: How many bytes it may write to standard output.

    Returns:
        What it wrote to standard output.

    Raises:
        SandboxError: It failed; see `tool_error`.
        FileSystemError: It wrote more than `output_limit` bytes.
        ConnectError: Its exit code is not known.
    """
    spec = ProcessSpec(command, {"LC_ALL": "C"}, "/", open_stdin=False, timeout=math.inf)
    process = await processes.start(spec)
    output, reason = bytearray(), bytearray()
    ended = False

    async def release() -> None:
        if not ended:
            await processes.end_or_destroy(process)
        await process.aclose()

    try:
        while (chunk := await process.receive()) is not None:
            assert isinstance(chunk, OutputChunk)
            if chunk.stream == "stdout":
                output += chunk.data
                if len(output) > output_limit:
                    raise _too_much(path, output_limit)
            elif len(reason) < _REASON_LIMIT:
                reason += chunk.data
        code = (await process.wait()).code
        ended = True
    finally:
        await uninterrupted(release)
    if code is None:
        raise ConnectError("the exit code of a file operation is unknown", hint="try it again")
    if code != 0:
        raise tool_error(path, command[0], code, reason.decode("utf-8", "replace"))
    return bytes(output)


def _too_much(path: str, limit: int) -> FileSystemError:
    return FileSystemError(
        f"what there is to say about {path!r} is larger than {limit} bytes",
        hint="ask for a part of it with run()",
    )
