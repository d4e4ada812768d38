"""What the tools of all frameworks share: in whose sandbox a call runs, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from sandboxio.backends import install_command
from sandboxio.errors import ConfigurationError

if TYPE_CHECKING:
    from sandboxio import AsyncSandbox, ExecResult

__all__ = ["TIMEOUT_SECONDS", "SandboxCalls", "SandboxSource", "missing_extra"]

SandboxSource: TypeAlias = "AsyncSandbox | Callable[[], AbstractAsyncContextManager[AsyncSandbox]]"
"""A sandbox that all calls share and its owner ends, or a function that makes one for each call."""

TIMEOUT_SECONDS: Final = 60.0

_CODE: Final = (
    "Run a Python program in an isolated sandbox and return its exit code and what it printed. "
    "Every call starts a new interpreter: import what you need, and print what you want to see. "
)
_COMMAND: Final = (
    "Run a shell command line in an isolated sandbox and return its exit code and what it wrote. "
    "Every call starts a new shell, and nothing can be typed while it runs. "
)
_SHARED: Final = "Files stay from one call to the next. The network may be denied."
_FRESH: Final = "Nothing stays from one call to the next, files included. The network may be denied."


class SandboxCalls:
    """The calls that a model makes of a sandbox, each bounded in time.

    Args:
        source: The sandbox, or a function that makes one, such as `sandboxio.create`. What it makes
            serves one call and is ended after it, also when the call fails or is cancelled.
        timeout: Seconds that one call may take, beside the creation.

    Raises:
        ConfigurationError: An argument means nothing.
    """

    def __init__(self, source: SandboxSource, timeout: float) -> None:
        if not callable(source) and not hasattr(source, "run_code"):
            raise ConfigurationError(
                f"a tool cannot run code in a {type(source).__name__}",
                hint="give a sandbox, or a function that makes one, such as sandboxio.create",
            )
        if not (isfinite(timeout) and timeout > 0):
            raise ConfigurationError(f"timeout is {timeout!r:.40}", hint="give a positive number of seconds")
        self._source = source
        self._timeout = timeout
        kept = _FRESH if callable(source) else _SHARED
        self.code_description = _CODE + kept
        self.command_description = _COMMAND + kept

    async def run_code(self, code: str) -> ExecResult:
        """Run a Python program. Errors are those of `AsyncSandbox.run_code`, and of the creation."""
        async with self._sandbox() as sandbox:
            return await sandbox.run_code(code, timeout=self._timeout)

    async def run_command(self, command: str) -> ExecResult:
        """Run a line of shell. Errors are those of `AsyncSandbox.run`, and of the creation."""
        async with self._sandbox() as sandbox:
            return await sandbox.run(command, timeout=self._timeout)

    def _sandbox(self) -> AbstractAsyncContextManager[AsyncSandbox]:
        if callable(self._source):
            return self._source()
        return cast("AbstractAsyncContextManager[AsyncSandbox]", nullcontext(self._source))


def missing_extra(distribution: str, extra: str) -> ConfigurationError:
    """The error about a framework that is not installed.

    Example: `raise missing_extra("langchain-core", "langgraph") from exc`
    """
    return ConfigurationError(
        f"these tools need {distribution}, which is not installed", hint=install_command(extra)
    )
