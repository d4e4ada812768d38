"""Code contexts by the caller's names, and clean ones for a single use."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import anyio
from e2b.exceptions import NotFoundException, SandboxException
from e2b_code_interpreter import AsyncSandbox
from e2b_code_interpreter import Context as NativeContext

from sandboxio.errors import CapabilityNotSupported

__all__ = ["CodeContext", "Contexts"]

_OPEN_SECONDS: Final = 30.0
_LATE_SECONDS: Final = 5.0
_REMOVE_SECONDS: Final = 5.0
_SERVER_ERROR: Final = 500


class CodeContext:
    """One context of the interpreter.

    Attributes:
        native_id: E2B's id of it; empty while it is not open.
        marker: The number of its kernel, once that was put under one.
        busy: Held while a cell runs in it.
        lost: Whether its state was lost since its last cell, which is said once.
        has_variables: Whether a cell before this one was given variables.
    """

    def __init__(self) -> None:
        self.native_id = ""
        self.marker = ""
        self.busy = asyncio.Lock()
        self.lost = False
        self.has_variables = False

    def forget_kernel(self) -> None:
        """Its kernel was ended, with all that it held."""
        self.marker = ""
        self.has_variables = False
        self.lost = True


class Contexts:
    """The contexts that one handle of a sandbox has opened.

    Args:
        native: The SDK's sandbox.
        home: The folder that they start in.
        template: The template's name, for messages.
    """

    def __init__(self, native: AsyncSandbox, home: str, template: str) -> None:
        self._native = native
        self._home = home
        self._template = template
        self._named: dict[tuple[str, str], CodeContext] = {}

    def named(self, language: str, name: str) -> CodeContext:
        """The context that the caller calls so; it may not be open yet."""
        return self._named.setdefault((language, name), CodeContext())

    async def open(self, context: CodeContext, language: str) -> None:
        """Open a context. One whose opening is cut off is removed again.

        Raises:
            CapabilityNotSupported: The template has no kernel for the language.
        """
        opening = asyncio.ensure_future(
            self._native.create_code_context(cwd=self._home, language=language, request_timeout=_OPEN_SECONDS)
        )
        try:
            context.native_id = (await asyncio.shield(opening)).id
        except SandboxException as exc:
            raise self._refused(language, exc) from exc
        except asyncio.CancelledError:
            await self._remove_late(opening)
            raise

    async def restart(self, context: CodeContext) -> None:
        """Give a context a new kernel."""
        await self._native.restart_code_context(context.native_id)

    async def end(self, context: CodeContext) -> None:
        """Remove a context with its kernel.

        Raises:
            Exception: Whatever the SDK says when it cannot tell that the kernel has ended.
        """
        native_id, context.native_id = context.native_id, ""
        if native_id:
            with contextlib.suppress(NotFoundException):
                await self._native.remove_code_context(native_id)

    async def remove(self, context: CodeContext) -> None:
        """The same for a context in which nothing runs. Never raises: it goes with the sandbox at last."""
        with anyio.move_on_after(_REMOVE_SECONDS, shield=True), contextlib.suppress(Exception):
            await self.end(context)

    async def _remove_late(self, opening: asyncio.Future[NativeContext]) -> None:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_LATE_SECONDS), contextlib.suppress(Exception):
                await self._native.remove_code_context((await asyncio.shield(opening)).id)
            opening.cancel()

    def _refused(self, language: str, exc: SandboxException) -> Exception:
        """A refusal that names no fault of the server means that there is no such kernel."""
        status = str(exc).partition(" ")[0]
        if status.isdecimal() and int(status) < _SERVER_ERROR and int(status) not in (401, 403, 429):
            return CapabilityNotSupported(
                f"the code interpreter of the template {self._template!r} has no kernel for {language}",
                hint=f"use a template whose code interpreter runs {language}",
            )
        return exc
