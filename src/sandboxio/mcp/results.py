"""What the tools answer: the shapes, which the SDK publishes as output schemas, and how they are filled.

Every answer carries the same content twice, as structured output and as JSON text for clients that read
only text, which is what the protocol asks for. Pictures follow as image content.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic import Field
from typing_extensions import TypedDict

from sandboxio import ExecResult, RichOutput
from sandboxio.mcp.bounds import (
    MAX_IMAGE_BYTES,
    MAX_IMAGES,
    MAX_OUTPUT_TEXT,
    MAX_OUTPUTS,
    MAX_TEXT,
    middle_cut,
)
from sandboxio.mcp.text import sendable

__all__ = [
    "DirectoryEntry",
    "DirectoryListing",
    "FileContent",
    "RunOutcome",
    "SandboxDescription",
    "ShownOutput",
    "WrittenFile",
    "answer",
    "picture",
    "run_outcome",
]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models can look at."""

Note = Annotated[
    str,
    Field(description="What changed about the sandbox itself since the last call; empty almost always."),
]


class ShownOutput(TypedDict):
    """A rich output of the code, such as the value of its last line."""

    mime_type: str
    text: Annotated[str, Field(description="The output as text, or where it can be seen instead.")]


class RunOutcome(TypedDict):
    """How a run ended."""

    exit_code: Annotated[int, Field(description="0 is success; 128 + n is an end by signal n.")]
    stdout: str
    stderr: str
    outputs: list[ShownOutput]
    truncated: Annotated[bool, Field(description="Whether output is missing from stdout or stderr.")]
    out_of_memory: Annotated[bool, Field(description="Whether a process was killed for want of memory.")]
    duration_ms: int
    note: Note


class FileContent(TypedDict):
    """A file, or a part of it."""

    path: str
    size: Annotated[int, Field(description="Size of the whole file in bytes.")]
    encoding: Annotated[
        str,
        Field(
            description='How content is written: "utf-8", "base64", or "image" when the picture is attached.'
        ),
    ]
    mime_type: str
    content: str
    next_line: Annotated[
        int | None, Field(description="Give this as start_line to read on; null after the last line.")
    ]
    truncated: Annotated[
        bool, Field(description="Whether content is one line that is too long and lacks its middle.")
    ]
    note: Note


class WrittenFile(TypedDict):
    """What was written."""

    path: str
    size: Annotated[int, Field(description="Size of the file in bytes.")]
    note: Note


class DirectoryEntry(TypedDict):
    """One entry of a directory."""

    name: Annotated[
        str,
        Field(
            description="Bytes that are no UTF-8 are shown as \N{REPLACEMENT CHARACTER}; reach such a file "
            "with a pattern in run_command."
        ),
    ]
    is_dir: bool
    size: int | None


class DirectoryListing(TypedDict):
    """The entries of a directory, sorted by name."""

    path: str
    entries: list[DirectoryEntry]
    total: Annotated[
        int, Field(description="How many entries there are; more than are listed if it is larger.")
    ]
    note: Note


class SandboxDescription(TypedDict):
    """The sandbox and its limits."""

    backend: str
    sandbox_id: str
    isolation: Annotated[
        str, Field(description="What separates the sandbox from its host, as far as it is verified.")
    ]
    capabilities: list[str]
    egress: Annotated[
        str,
        Field(
            description='"deny": no network, except for the hosts in allow. "allow": everything is reachable.'
        ),
    ]
    allow: list[str]
    lifetime_seconds: float
    remaining_seconds: Annotated[
        float, Field(description="After this time the sandbox and its files are gone.")
    ]
    output_limit: Annotated[int, Field(description="Characters of stdout, stderr or a file in one answer.")]
    note: Note


def answer(structured: Mapping[str, Any], *further: ContentBlock) -> CallToolResult:
    """The structured output with its text form, and what goes beside it. Every string in it can be sent.

    Example: `answer(WrittenFile(path="a.txt", size=3, note=""))`
    """
    text = sendable(json.dumps(structured, ensure_ascii=False))
    return CallToolResult(content=[TextContent(text=text), *further], structured_content=json.loads(text))


def picture(data: bytes, mime_type: str) -> ImageContent | None:
    """Image content, or `None` if a model cannot look at this kind or size.

    Example: `picture(png, "image/png")`
    """
    if mime_type not in PICTURES or len(data) > MAX_IMAGE_BYTES:
        return None
    return ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)


def run_outcome(result: ExecResult, note: str) -> CallToolResult:
    """What a run is answered with.

    Example: `run_outcome(await sandbox.run(["ls"]), "")`
    """
    outputs, pictures = _shown(result.results or ())
    outcome = RunOutcome(
        exit_code=result.exit_code,
        stdout=middle_cut(result.stdout),
        stderr=middle_cut(result.stderr),
        outputs=outputs,
        truncated=result.truncated or max(len(result.stdout), len(result.stderr)) > MAX_TEXT,
        out_of_memory=result.oom_killed,
        duration_ms=result.meter.duration_ms if result.meter else 0,
        note=note,
    )
    return answer(outcome, *pictures)


def _shown(results: Sequence[RichOutput]) -> tuple[list[ShownOutput], list[ImageContent]]:
    outputs: list[ShownOutput] = []
    pictures: list[ImageContent] = []
    for result in results[:MAX_OUTPUTS]:
        if isinstance(result.data, str):
            text = middle_cut(result.data, MAX_OUTPUT_TEXT)
        elif len(pictures) < MAX_IMAGES and (shown := picture(result.data, result.mime_type)):
            pictures.append(shown)
            text = f"attached as picture {len(pictures)}"
        else:
            text = f"{len(result.data)} bytes left out: save them to a file in the sandbox"
        outputs.append(ShownOutput(mime_type=result.mime_type[:100], text=text))
    if len(results) > MAX_OUTPUTS:
        text = f"{len(results) - MAX_OUTPUTS} further outputs left out"
        outputs.append(ShownOutput(mime_type="text/plain", text=text))
    return outputs, pictures
