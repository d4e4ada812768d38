"""In whose sandbox a tool's call runs, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from inspect import iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast

from sandboxio.adapter.validation import checked_timeout
from sandboxio.errors import ConfigurationError

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox, ExecResult

__all__ = ["TIMEOUT_SECONDS", "SandboxCalls", "SandboxSource"]

SandboxSource: TypeAlias = "AsyncSandbox | Callable[[], AbstractAsyncContextManager[AsyncSandbox]]"
"""A sandbox that all calls share and its owner ends, or a function that makes one for each call."""

TIMEOUT_SECONDS: Final = 60.0

_MADE: Final = "the tool's function made"


class SandboxCalls:
    """The calls that a model makes of a sandbox, each bounded in time.

    Args:
        source: The sandbox, or a function that makes one, such as `sandboxio.create`. What it makes
            serves one call and is ended after it, also when the call fails or is cancelled.
        timeout: Seconds that one call may take, beside the creation.

    Attributes:
        shared: Whether all calls have the same sandbox.

    Raises:
        ConfigurationError: An argument means nothing.

    Example: `await SandboxCalls(sandboxio.create, 60).run_command("uname")`
    """

    def __init__(self, source: SandboxSource, timeout: float) -> None:
        self.shared = _is_sandbox(source)
        self._timeout = checked_timeout(timeout)
        if _is_sandbox(source):
            self._open: Callable[[], object] = lambda: nullcontext(source)
        elif callable(source) and not iscoroutinefunction(source):
            self._open = source
        else:
            raise _no_sandbox("the tool was given", source)

    async def run_code(self, code: str) -> ExecResult:
        """Run a Python program.

        Raises:
            ConfigurationError: The function made no sandbox, or the code cannot be passed on.
            SandboxError: As `AsyncSandbox.run_code` and the creation raise it.
        """
        async with self._context() as sandbox:
            return await _checked(sandbox).run_code(code, timeout=self._timeout)

    async def run_command(self, command: str) -> ExecResult:
        """Run a line of shell.

        Raises:
            ConfigurationError: The function made no sandbox, or the line cannot be passed on.
            SandboxError: As `AsyncSandbox.run` and the creation raise it.
        """
        async with self._context() as sandbox:
            return await _checked(sandbox).run(command, timeout=self._timeout)

    def _context(self) -> AbstractAsyncContextManager[object]:
        made = self._open()
        if isinstance(made, AbstractAsyncContextManager):
            return cast("AbstractAsyncContextManager[object]", made)
        if iscoroutine(made):
            made.close()
        raise _no_sandbox(_MADE, made)


def _is_sandbox(candidate: object) -> TypeGuard[AsyncSandbox]:
    # A synchronous sandbox has the same methods, and would fail only once the code has run.
    return hasattr(candidate, "run_code") and isinstance(candidate, AbstractAsyncContextManager)


def _checked(candidate: object) -> AsyncSandbox:
    if not _is_sandbox(candidate):
        raise _no_sandbox(_MADE, candidate)
    return candidate


def _no_sandbox(came: str, thing: object) -> ConfigurationError:
    kind = "an asynchronous function" if iscoroutinefunction(thing) else type(thing).__name__
    return ConfigurationError(
        f"{came} {kind}, not an asynchronous sandbox",
        hint="give a sandbox of sandboxio.create, or a plain function that makes one",
    )
