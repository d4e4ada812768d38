"""What the tools themselves refuse. The hints of these errors are written for a model, and reach it so."""

from __future__ import annotations

from sandboxio import ConfigurationError, ExecutionTimeout, FileSystemError

__all__ = ["ArgumentRefused", "FileNotShown", "LifetimeReached", "Refusal"]


class Refusal:
    """Marks an error whose hint is the fix for a model.

    Example: `if isinstance(error, Refusal): fix = error.hint`
    """


class ArgumentRefused(Refusal, ConfigurationError):
    """A tool cannot be called like this. Nothing was done.

    Example: `raise ArgumentRefused("content is not base64", hint="encode it")`
    """


class FileNotShown(Refusal, FileSystemError):
    """There is such a file or directory, but what it holds does not go into an answer.

    Example: `raise FileNotShown("a.bin is binary", hint="look into it with run_python")`
    """


class LifetimeReached(Refusal, ExecutionTimeout):
    """A run was ended because the lifetime of its sandbox was over, and not by its own bound.

    Example: `raise LifetimeReached("...", hint="call again", partial=exc.partial) from exc`
    """
