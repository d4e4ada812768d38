"""Code, run by E2B's own interpreter: clean contexts for single cells, and lasting ones by name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

import anyio
from e2b.exceptions import NotFoundException
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import CodeSpec, Execution
from sandboxio_e2b.cell import Cell
from sandboxio_e2b.contexts import CodeContext, Contexts
from sandboxio_e2b.interpreter import run_to_end
from sandboxio_e2b.preamble import HAS_NUMBER, check_kernel, number_kernel, set_variables
from sandboxio_e2b.process import E2BProcesses

__all__ = ["E2BCode"]

_PYTHON: Final = "python"
_RENEW_SECONDS: Final = 2.0


class E2BCode:
    """The code port of a microVM with a code interpreter.

    It runs Python. Code of other languages is fed to their interpreters as commands, which can be given
    variables and ended whole; E2B's kernels for them can neither.

    A cell that has to be stopped takes its kernel along, since that is the only way to stop it: the
    context is given a new one, and its next use says that the state is lost.

    Args:
        native: The SDK's sandbox.
        processes: What ends trees.
        contexts: The contexts.
        env: Variables of every cell.
    """

    stateful = True

    def __init__(
        self, native: AsyncSandbox, processes: E2BProcesses, contexts: Contexts, env: Mapping[str, str]
    ) -> None:
        self._native = native
        self._processes = processes
        self._contexts = contexts
        self._env = dict(env)

    def runs(self, language: str) -> bool:
        """See `CodePort.runs`."""
        return language == _PYTHON

    async def start(self, spec: CodeSpec) -> Execution:
        """See `CodePort.start`."""
        context = CodeContext() if spec.context_id is None else self._contexts.named(spec.context_id)
        await context.busy.acquire()
        ready = False
        try:
            try:
                cell = await self._cell_in(context, spec)
            except NotFoundException:  # the provider has dropped it
                context.native_id = ""
                cell = await self._cell_in(context, spec)
            ready = True
        finally:
            if not ready:
                await self._give_up(context)
        cell.begin()
        return cell

    async def _cell_in(self, context: CodeContext, spec: CodeSpec) -> Cell:
        """A cell that is announced to a context, whose kernel is ready for it."""
        lasting = spec.context_id is not None
        if not context.native_id:
            context.forget_kernel()
            await self._contexts.open(context)
        cell = Cell(
            self._native,
            spec,
            context,
            kill=lambda: self._stop(context, lasting=lasting),
            close=lambda: self._leave(context, lasting=lasting),
        )
        ready = False
        try:
            await self._prepare(context, spec, cell)
            ready = True
        finally:
            if not ready:
                await cell.withdraw()
        return cell

    async def _prepare(self, context: CodeContext, spec: CodeSpec, cell: Cell) -> None:
        """Have the kernel under its number, and set the cell's variables.

        The cell is announced behind the last request of it.
        """

        async def run(code: str, *, last: bool) -> str:
            return await run_to_end(self._native, native_id, code, cell.announce if last else None)

        native_id, as_limit = context.native_id, self._processes.numbered
        variables = {**self._env, **spec.env}
        to_set = bool(variables or context.has_variables)
        if context.marker:
            written = await run(check_kernel(context.marker, as_limit=as_limit), last=not to_set)
            if HAS_NUMBER not in written:
                context.forget_kernel()  # it died between two cells, and E2B has started another one
                await cell.withdraw()
        if not context.marker:
            marker = self._processes.new_marker()
            await run(number_kernel(marker, as_limit=as_limit), last=not to_set)
            context.marker = marker
        if to_set:
            await run(set_variables(variables), last=True)
            context.has_variables = bool(variables)

    async def _give_up(self, context: CodeContext) -> None:
        """After a start that failed half-way: what is in the kernel is not known any more."""
        context.forget_kernel()
        try:
            await self._contexts.remove(context)
        finally:
            context.busy.release()

    async def _stop(self, context: CodeContext, *, lasting: bool) -> None:
        """End all that runs under the kernel's number, and so the kernel.

        Whether the provider puts another one in its place at once matters to nobody's safety.
        """
        if context.marker:
            await self._processes.end_tree(context.marker)
        context.forget_kernel()
        renewed = False
        with anyio.move_on_after(_RENEW_SECONDS), contextlib.suppress(Exception):
            await (self._contexts.restart if lasting else self._contexts.end)(context)
            renewed = True
        if lasting and not renewed:
            context.native_id = ""

    async def _leave(self, context: CodeContext, *, lasting: bool) -> None:
        try:
            if not lasting:
                await self._contexts.remove(context)
        finally:
            context.busy.release()
