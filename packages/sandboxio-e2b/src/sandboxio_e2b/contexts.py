"""Code contexts by the caller's names, and clean ones for a single use. Each is a Python kernel."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import anyio
from e2b.exceptions import NotFoundException
from e2b_code_interpreter import AsyncSandbox
from e2b_code_interpreter import Context as NativeContext

from sandboxio.errors import ConnectError
from sandboxio.release import bounded

__all__ = ["CodeContext", "Contexts"]

_PYTHON: Final = "python"
_OPEN_SECONDS: Final = 30.0
_REMOVE_SECONDS: Final = 5.0


class CodeContext:
    """One context of the interpreter.

    Attributes:
        native_id: E2B's id of it; empty while it is not open.
        marker: The number of its kernel, once that was put under one.
        busy: Held while a cell runs in it.
        lost: Whether its state was lost since its last cell, which is said once.
        has_variables: Whether the last cell was given variables.
    """

    def __init__(self) -> None:
        self.native_id = ""
        self.marker = ""
        self.busy = asyncio.Lock()
        self.lost = False
        self.has_variables = False

    def forget_kernel(self) -> None:
        """Its kernel has ended, with all that it held, if it held anything."""
        self.lost = self.lost or bool(self.marker)
        self.marker = ""
        self.has_variables = False


class Contexts:
    """The contexts that one handle of a sandbox has opened.

    Args:
        native: The SDK's sandbox.
        home: The folder that they start in.
    """

    def __init__(self, native: AsyncSandbox, home: str) -> None:
        self._native = native
        self._home = home
        self._named: dict[str, CodeContext] = {}
        self._left = False

    def named(self, name: str) -> CodeContext:
        """The context that the caller calls so; it may not be open yet."""
        return self._named.setdefault(name, CodeContext())

    async def open(self, context: CodeContext) -> None:
        """Open a context. One whose opening is cut off is removed again.

        Raises:
            ConnectError: The handle was left meanwhile, and removes contexts no more.
        """
        opening = asyncio.ensure_future(
            self._native.create_code_context(cwd=self._home, language=_PYTHON, request_timeout=_OPEN_SECONDS)
        )
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            await bounded(lambda: self._remove_late(opening), grace=_REMOVE_SECONDS)
            raise
        context.native_id = opening.result().id
        if self._left:
            await self.remove(context)
            raise ConnectError("this handle of the sandbox was left", hint="connect to the sandbox again")

    async def restart(self, context: CodeContext) -> None:
        """Give a context a new kernel; one that is not there any more is opened anew at its next use."""
        if not context.native_id:
            return
        try:
            await self._native.restart_code_context(context.native_id)
        except NotFoundException:
            context.native_id = ""

    async def end(self, context: CodeContext) -> None:
        """Remove a context with its kernel. One that is gone is success.

        Raises:
            Exception: Whatever the SDK says when it cannot tell that the kernel has ended.
        """
        if context.native_id:
            with contextlib.suppress(NotFoundException):
                await self._native.remove_code_context(context.native_id)
            context.native_id = ""

    async def remove(self, context: CodeContext) -> None:
        """The same for one in which nothing runs. Never raises: it goes with the sandbox at the latest."""
        try:
            with contextlib.suppress(Exception):
                await bounded(lambda: self.end(context), grace=_REMOVE_SECONDS)
        finally:
            context.native_id = ""

    async def remove_all(self) -> None:
        """Remove every context that has a name. None can be opened any more."""
        self._left = True
        contexts, self._named = list(self._named.values()), {}
        async with anyio.create_task_group() as group:
            for context in contexts:
                group.start_soon(self.remove, context)

    async def _remove_late(self, opening: asyncio.Future[NativeContext]) -> None:
        await asyncio.wait({opening})
        if opening.exception() is None:
            await self._native.remove_code_context(opening.result().id)
