"""For adapters made with the kit: a sandbox whose directories read as a hostile archive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from unittest.mock import patch

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.protocols import AsyncSandbox

__all__ = ["replaced_trees"]

_PIECE_BYTES: Final = 1000


class _Pieces:
    """Bytes as the chunks of a stream."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        piece, self._rest = self._rest[:_PIECE_BYTES], self._rest[_PIECE_BYTES:]
        return piece


@asynccontextmanager
async def replaced_trees(sandbox: AsyncSandbox, archive: bytes) -> AsyncGenerator[None, None]:
    """While entered, every directory of the sandbox is downloaded as this tar archive.

    The tar of a template cannot always be replaced by code in the sandbox, so what the file port
    gives is. It serves the probe `hostile_archive`.

    Args:
        sandbox: One of the kit's, as `provision` returns it.
        archive: The bytes of the archive.

    Example: `async with replaced_trees(sandbox, archive): yield`
    """
    assert isinstance(sandbox, Sandbox), "the sandbox was not made with the adapter kit"
    files = sandbox._guard.driver.files  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- it looks behind

    @asynccontextmanager
    async def open_tree(_: str) -> AsyncGenerator[_Pieces, None]:
        yield _Pieces(archive)

    with patch.object(files, "open_tree", open_tree):
        yield
