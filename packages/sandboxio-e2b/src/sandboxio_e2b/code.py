"""Code, run by E2B's own interpreter: clean contexts for single cells, and lasting ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import CodeSpec, Execution
from sandboxio_e2b.cell import Cell
from sandboxio_e2b.contexts import CodeContext, Contexts
from sandboxio_e2b.interpreter import run_to_end
from sandboxio_e2b.preamble import number_kernel, set_variables
from sandboxio_e2b.process import E2BProcesses

__all__ = ["E2BCode"]

_PYTHON: Final = "python"
_LANGUAGES: Final = frozenset({_PYTHON, "javascript", "typescript", "r", "java", "bash"})


class E2BCode:
    """The code port of a microVM with a code interpreter.

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
        return language in _LANGUAGES

    async def start(self, spec: CodeSpec) -> Execution:
        """See `CodePort.start`.

        Raises:
            CapabilityNotSupported: The template's interpreter has no kernel for the language.
        """
        if spec.context_id is None:
            context = CodeContext()
            return await self._begin(spec, context, lasting=False)
        context = self._contexts.named(spec.language, spec.context_id)
        return await self._begin(spec, context, lasting=True)

    async def _begin(self, spec: CodeSpec, context: CodeContext, *, lasting: bool) -> Execution:
        await context.busy.acquire()
        lost, context.lost = context.lost, False
        try:
            if not context.native_id:
                await self._contexts.open(context, spec.language)
            if spec.language == _PYTHON:
                await self._prepare(spec, context)
        except BaseException:
            had_state = bool(context.marker)
            await self._contexts.remove(context)
            context.forget_kernel()
            context.lost = lost or had_state
            context.busy.release()
            raise
        return Cell(
            self._native,
            spec,
            context,
            lost=lost,
            kill=lambda: self._stop(context, lasting=lasting),
            close=lambda: self._leave(context, lasting=lasting),
        )

    async def _prepare(self, spec: CodeSpec, context: CodeContext) -> None:
        """Put the kernel under a number, once, and set the cell's variables."""
        if not context.marker:
            marker = self._processes.new_marker()
            code = number_kernel(marker, as_limit=self._processes.numbered)
            await run_to_end(self._native, context.native_id, code)
            context.marker = marker
        variables = {**self._env, **spec.env}
        if variables or context.has_variables:
            await run_to_end(self._native, context.native_id, set_variables(variables))
            context.has_variables = bool(variables)

    async def _stop(self, context: CodeContext, *, lasting: bool) -> None:
        """End all that runs under its number, then the kernel, if that is still there."""
        if context.marker:
            await self._processes.end_tree(context.marker)
        if lasting:
            context.forget_kernel()
            await self._contexts.restart(context)
        else:
            await self._contexts.end(context)

    async def _leave(self, context: CodeContext, *, lasting: bool) -> None:
        if not lasting:
            await self._contexts.remove(context)
        context.busy.release()
