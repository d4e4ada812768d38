"""The six tools. Each borrows its session's sandbox for one call; none touches the host or the settings."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Awaitable, Callable
from typing import Annotated, cast

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from sandboxio import AsyncFileSystem, ExecResult, ExecutionTimeout, FileInfo, SandboxError
from sandboxio.mcp.bounds import LISTING_SECONDS, MAX_ENTRIES, MAX_FILE_BYTES, MAX_TEXT
from sandboxio.mcp.errors import Redaction, explain
from sandboxio.mcp.holder import Lease
from sandboxio.mcp.progress import PROGRESS_SECONDS, Stage, reporting
from sandboxio.mcp.reading import shown_file
from sandboxio.mcp.refusals import ArgumentRefused, FileNotShown, LifetimeReached
from sandboxio.mcp.results import (
    DirectoryEntry,
    DirectoryListing,
    FileContent,
    RunOutcome,
    SandboxDescription,
    WrittenFile,
    answer,
    run_outcome,
)
from sandboxio.mcp.sessions import Request

__all__ = ["Tools"]

Timeout = Annotated[
    float, Field(gt=0, le=86400, description="Seconds after which the run and all its processes are ended.")
]
Path = Annotated[
    str, Field(min_length=1, description="Path in the sandbox; a relative one is below the home folder.")
]
Work = Callable[[Lease, Stage], Awaitable[CallToolResult]]


def _line_or_list(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in cast(list[object], value)):
        return cast(object, value)
    raise PydanticCustomError("command", "Input should be a text or a list of texts")


# `str` alone, though a list is as good: with any other annotation the SDK reads a text as JSON first, and the
# line `["ls"]` or `null` would not reach the shell.
Command = Annotated[
    str,
    PlainValidator(_line_or_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class Tools:
    """The functions behind the tools. What they are called and described as is in `sandboxio.mcp.catalog`.

    Args:
        redaction: What must not reach a model.
        progress_seconds: Seconds between two signs of life of a long call.

    Example: `Tools(Redaction.of_process())`
    """

    def __init__(self, redaction: Redaction, *, progress_seconds: float = PROGRESS_SECONDS) -> None:
        self._redaction = redaction
        self._progress_seconds = progress_seconds

    async def run_python(
        self,
        request: Request,
        code: Annotated[str, Field(description="Python source code of any length.")],
        timeout_seconds: Timeout = 120.0,
        context: Annotated[
            str,
            Field(
                description="A name of your choice. Calls with the same name share variables and imports. "
                "Only where sandbox_info lists STATEFUL_CODE; leave it out otherwise."
            ),
        ] = "",
    ) -> Annotated[CallToolResult, RunOutcome]:
        """Run code, clean or in a named context."""

        async def run(lease: Lease, bound: float | None) -> ExecResult:
            return await lease.sandbox.run_code(code, context_id=context or None, timeout=bound)

        return await self._run(request, timeout_seconds, run)

    async def run_command(
        self,
        request: Request,
        command: Annotated[
            Command,
            Field(
                description="A line for the shell, or a list of a program and its arguments, without a shell."
            ),
        ],
        timeout_seconds: Timeout = 120.0,
        cwd: Annotated[str, Field(min_length=1, description="Working folder.")] = ".",
        stdin: Annotated[str, Field(description="What the command reads from its standard input.")] = "",
    ) -> Annotated[CallToolResult, RunOutcome]:
        """Run a command to its end."""

        async def run(lease: Lease, bound: float | None) -> ExecResult:
            return await lease.sandbox.run(command, timeout=bound, cwd=cwd, stdin=stdin or None)

        return await self._run(request, timeout_seconds, run)

    async def read_file(
        self,
        request: Request,
        path: Path,
        start_line: Annotated[int, Field(ge=1, description="The first line to show, for text.")] = 1,
    ) -> Annotated[CallToolResult, FileContent]:
        """Show a file."""

        async def read(lease: Lease, _: Stage) -> CallToolResult:
            data = await lease.sandbox.files.read(path, max_bytes=MAX_FILE_BYTES)
            return shown_file(path, data, start_line, lease.note)

        return await self._call(request, read)

    async def write_file(
        self,
        request: Request,
        path: Path,
        content: Annotated[str, Field(description="The whole new content.")],
        encoding: Annotated[
            str, Field(pattern="^(utf-8|base64)$", description='How content is written: "utf-8" or "base64".')
        ] = "utf-8",
    ) -> Annotated[CallToolResult, WrittenFile]:
        """Create or replace a file."""
        try:
            data = _decoded(content, encoding)
        except ArgumentRefused as exc:
            raise self._tool_error(exc) from exc

        async def write(lease: Lease, _: Stage) -> CallToolResult:
            parent = posixpath.dirname(path)
            if parent:
                await lease.sandbox.files.mkdir(parent, parents=True)
            await lease.sandbox.files.write(path, data)
            return answer(WrittenFile(path=path, size=len(data), note=lease.note))

        return await self._call(request, write)

    async def list_files(
        self, request: Request, path: Path = "."
    ) -> Annotated[CallToolResult, DirectoryListing]:
        """List a directory."""

        async def list_entries(lease: Lease, _: Stage) -> CallToolResult:
            infos = await _listed(lease.sandbox.files, path)
            entries = [
                DirectoryEntry(name=info.name, is_dir=info.is_dir, size=info.size)
                for info in infos[:MAX_ENTRIES]
            ]
            return answer(DirectoryListing(path=path, entries=entries, total=len(infos), note=lease.note))

        return await self._call(request, list_entries)

    async def sandbox_info(self, request: Request) -> Annotated[CallToolResult, SandboxDescription]:
        """Describe the sandbox, which is made if there is none yet: only then is it known."""
        profile = request.request_context.lifespan_context.holder_for(request).profile

        async def describe(lease: Lease, _: Stage) -> CallToolResult:
            sandbox = lease.sandbox
            return answer(
                SandboxDescription(
                    backend=sandbox.backend,
                    sandbox_id=sandbox.id,
                    isolation=sandbox.isolation.name,
                    capabilities=sorted(flag.name or "" for flag in sandbox.capabilities),
                    egress=profile.network.egress,
                    allow=list(profile.network.allow),
                    lifetime_seconds=profile.lifetime,
                    remaining_seconds=round(lease.remaining, 1),
                    output_limit=MAX_TEXT,
                    note=lease.note,
                )
            )

        return await self._call(request, describe)

    async def _run(
        self, request: Request, seconds: float, run: Callable[[Lease, float | None], Awaitable[ExecResult]]
    ) -> CallToolResult:
        async def work(lease: Lease, stage: Stage) -> CallToolResult:
            stage.text, stage.total = "running", min(seconds, lease.remaining)
            if seconds < lease.remaining:
                return run_outcome(await run(lease, seconds), lease.note)
            try:
                # Without a bound of its own a run ends a little before its sandbox: a timeout, and no loss.
                return run_outcome(await run(lease, None), lease.note)
            except ExecutionTimeout as exc:
                raise _lifetime_reached(exc, seconds, lease) from exc

        return await self._call(request, work)

    async def _call(self, request: Request, work: Work) -> CallToolResult:
        holder = request.request_context.lifespan_context.holder_for(request)
        stage = Stage("starting the sandbox")
        leases: list[Lease] = []

        async def lease_and_work() -> CallToolResult:
            async with holder.lease() as lease:
                leases.append(lease)
                stage.text = "working"
                return await work(lease, stage)

        try:
            result = await reporting(
                request.report_progress, stage, lease_and_work, interval=self._progress_seconds
            )
        except SandboxError as exc:
            note = leases[0].note if leases else ""
            holder.told(note)
            raise self._tool_error(exc, note, starting=not leases) from exc
        holder.told(leases[0].note)
        return result

    def _tool_error(self, error: SandboxError, note: str = "", *, starting: bool = False) -> ToolError:
        return ToolError(self._redaction.text(explain(error, note, starting=starting)))


async def _listed(files: AsyncFileSystem, path: str) -> tuple[FileInfo, ...]:
    with anyio.move_on_after(LISTING_SECONDS):
        return await files.ls(path)
    raise FileNotShown(
        f"listing {path!r} took more than {LISTING_SECONDS:g} s: it probably has very many entries",
        hint="count or match them with run_command, such as: ls -f FOLDER | head -n 100",
    )


def _lifetime_reached(exc: ExecutionTimeout, seconds: float, lease: Lease) -> LifetimeReached:
    return LifetimeReached(
        f"the run was ended with {seconds:g} s given, because the lifetime of its sandbox had only "
        f"{lease.remaining:.1f} s left",
        hint="do it in shorter steps, or call again when this sandbox is gone: the next one is empty and has "
        "its whole lifetime before it",
        partial=exc.partial,
    )


def _decoded(content: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return content.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(content, validate=True)
    except ValueError as exc:  # of what is not ASCII it is not even binascii.Error
        raise ArgumentRefused(
            "content is not base64", hint='encode it without line breaks, or give encoding="utf-8"'
        ) from exc
