"""The bounded text that a model gets for a result or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sandboxio.errors import ConfigurationError, ExecutionTimeout, ResourceLimitExceeded, SandboxError

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
        ConfigurationError: `max_chars` is below one.

    Example: `Answers().result(await sb.run(["uname"]))`
    """

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        if max_chars < 1:
            raise ConfigurationError(f"max_chars is {max_chars!r:.40}", hint="give a positive number")
        self._max_chars = max_chars

    def result(self, result: ExecResult) -> str:
        """A result. The exit code comes first, where no output can pose as it."""
        killed = ", and a process was killed for want of memory" if result.oom_killed else ""
        shown = "\n".join(_shown(output) for output in result.results or ())
        return f"exit code {result.exit_code}{killed}\n{self._outputs(result)}{self._part('results', shown)}"

    def error(self, error: SandboxError) -> str:
        """An error: its code, the fix and the page, and the output until then."""
        text = self._cut(str(error)) + "\n"
        if isinstance(error, ExecutionTimeout | ResourceLimitExceeded):
            text += self._outputs(error.partial)
        return text

    def _outputs(self, result: ExecResult) -> str:
        dropped = "[more was written and not kept]\n" if result.truncated else ""
        return self._part("stdout", result.stdout) + self._part("stderr", result.stderr) + dropped

    def _part(self, name: str, text: str) -> str:
        return f"{name}:\n{self._cut(text.rstrip())}\n" if text.strip() else ""

    def _cut(self, text: str) -> str:
        left_out = len(text) - self._max_chars
        if left_out <= 0:
            return text
        head = self._max_chars // 2
        return f"{text[:head]}\n[{left_out} characters left out]\n{text[head + left_out :]}"


def _shown(output: RichOutput) -> str:
    if output.mime_type.startswith("text/") and isinstance(output.data, str):
        return output.data
    return f"[{output.mime_type}, {len(output.data)} bytes, not shown]"
