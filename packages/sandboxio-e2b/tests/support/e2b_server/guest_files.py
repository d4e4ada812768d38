"""Files in a machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from .guest import Guest
from .ports import Entry

__all__ = ["GuestFiles"]


class GuestFiles:
    """See `Files`."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    async def stat(self, path: str) -> Entry:
        """See `Files.stat`."""
        return Entry(**await self._guest.call("file.stat", path=path))

    async def list(self, path: str, depth: int) -> Sequence[Entry]:
        """See `Files.list`."""
        stream = self._guest.open("file.list", path=path, depth=depth)
        text = bytearray()
        try:
            while (piece := await stream.receive()) is not None:
                text += piece[1]
        finally:
            stream.close()
        return [Entry(**json.loads(line)) for line in text.splitlines()]

    async def make_dir(self, path: str) -> Entry:
        """See `Files.make_dir`."""
        return Entry(**await self._guest.call("file.make_dir", path=path))

    async def move(self, source: str, destination: str) -> Entry:
        """See `Files.move`."""
        return Entry(**await self._guest.call("file.move", source=source, destination=destination))

    async def remove(self, path: str) -> None:
        """See `Files.remove`."""
        await self._guest.call("file.remove", path=path)

    async def size(self, path: str) -> int:
        """See `Files.size`."""
        return int(await self._guest.call("file.size", path=path))

    async def read(self, path: str) -> AsyncIterator[bytes]:
        """See `Files.read`."""
        stream = self._guest.open("file.read", path=path)
        try:
            while (piece := await stream.receive()) is not None:
                yield piece[1]
        finally:
            stream.close()

    async def write(self, path: str, data: AsyncIterator[bytes]) -> Entry:
        """See `Files.write`."""
        stream = self._guest.open("file.write", path=path)
        try:
            async for piece in data:
                await stream.send(piece)
            stream.finish()
            return Entry(**await stream.result())
        finally:
            stream.close()
