"""The bounded text that a model gets for a result or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sandboxio.errors import ConfigurationError, ExecutionTimeout, ResourceLimitExceeded, SandboxError
from sandboxio.excerpt import excerpt
from sandboxio.models import shown

if TYPE_CHECKING:
    from sandboxio import ExecResult, RichOutput

__all__ = ["MAX_CHARS", "Answers"]

MAX_CHARS: Final = 16_000


class Answers:
    """Renders what a model is shown.

    Args:
        max_chars: How many characters of standard output, of standard error, of results and of an
            error's words; of more, a model sees the beginning and the end.

    Raises:
        ConfigurationError: `max_chars` is no whole number above zero.

    Example: `Answers().result(await sb.run(["uname"]))`
    """

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self._max_chars = _checked_chars(max_chars)

    def result(self, result: ExecResult) -> str:
        """A result. The exit code comes first, where no output can pose as it."""
        killed = ", and a process was killed for want of memory" if result.oom_killed else ""
        shown_results = "\n".join(_text_of(output) for output in result.results or ())
        return (
            f"exit code {result.exit_code}{killed}\n"
            f"{self._outputs(result)}{self._part('results', shown_results)}"
        )

    def error(self, error: SandboxError) -> str:
        """An error: its code, the fix and the page, and the output until then."""
        text = excerpt(str(error), self._max_chars) + "\n"
        if isinstance(error, ExecutionTimeout | ResourceLimitExceeded):
            text += self._outputs(error.partial)
        return text

    def _outputs(self, result: ExecResult) -> str:
        dropped = "[more was written and not kept]\n" if result.truncated else ""
        return self._part("stdout", result.stdout) + self._part("stderr", result.stderr) + dropped

    def _part(self, name: str, text: str) -> str:
        return f"{name}:\n{excerpt(text.rstrip(), self._max_chars)}\n" if text.strip() else ""


def _checked_chars(max_chars: object) -> int:
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 1:
        raise ConfigurationError(
            f"max_chars is {shown(max_chars)}, not a number of characters",
            hint="give max_chars as an int above zero, or leave it out",
        )
    return max_chars


def _text_of(output: RichOutput) -> str:
    if output.mime_type.startswith("text/") and isinstance(output.data, str):
        return output.data
    return f"[{output.mime_type}, {len(output.data)} bytes, not shown]"
