"""Code contexts in a machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from .guest import Guest
from .ports import Context

__all__ = ["GuestKernels"]


class GuestKernels:
    """See `Kernels`."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._open: set[str] = set()

    async def open(self, language: str, cwd: str | None) -> Context:
        """See `Kernels.open`."""
        opened = await self._guest.call("context.open", language=language.strip().lower(), cwd=cwd)
        context = Context(**opened)
        self._open.add(context.id)
        return context

    def has(self, context_id: str) -> bool:
        """See `Kernels.has`."""
        return context_id in self._open

    async def contexts(self) -> Sequence[Context]:
        """See `Kernels.contexts`."""
        return [Context(**each) for each in await self._guest.call("context.list")]

    async def restart(self, context_id: str) -> None:
        """See `Kernels.restart`."""
        await self._guest.call("context.restart", context_id=context_id)

    async def close(self, context_id: str) -> None:
        """See `Kernels.close`."""
        self._open.discard(context_id)
        await self._guest.call("context.close", context_id=context_id)

    async def execute(
        self, context_id: str, code: str, env_vars: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """See `Kernels.execute`."""
        stream = self._guest.open(
            "context.execute", context_id=context_id, code=code, env_vars=dict(env_vars)
        )
        line = bytearray()
        try:
            while (piece := await stream.receive()) is not None:
                line += piece[1]
                while (end := line.find(b"\n")) >= 0:
                    message: Mapping[str, Any] = json.loads(line[:end])
                    del line[: end + 1]
                    yield message
        finally:
            stream.close()
