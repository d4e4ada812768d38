"""Fixes in the words of `sandboxio run`: the library names arguments and methods, a user has options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sandboxio.backends import DEFAULT_BACKEND

if TYPE_CHECKING:
    from sandboxio import SandboxError

__all__ = ["in_options"]

# Longer phrases stand before those that are part of them.
_PHRASES: Final = (
    (
        "raise timeout=, or make the program do less; exc.partial holds its output so far",
        "give --timeout more seconds, or have the command do less",
    ),
    (
        "create a new sandbox; give create(timeout=…) a longer lifetime",
        "run it again; give --timeout more seconds",
    ),
    (
        "raise the cap that the message names, in resources=Resources(…)",
        "raise the cap that the message names",
    ),
    ("raise Resources(memory_mb=…)", "give --memory-mb more"),
    ("raise Resources(disk_mb=…)", "give --disk-mb more"),
    ("leave resources out", "leave --cpu, --memory-mb and --disk-mb out"),
    ("network=NetworkPolicy(allow=(…,))", "--allow HOST"),
    ("require_isolation", "--require-isolation"),
    ("template=", f"--backend {DEFAULT_BACKEND}://IMAGE"),
    ("files.mkdir(…, parents=True)", "`mkdir -p`"),
    ("files.mkdir()", "`mkdir`"),
    ("files.ls()", "`ls`"),
    ("files.write()", "--upload"),
    ("run_code() for code", "--python for code"),
    ("pass it as stdin", "pipe it in"),
    ('give a list, such as run(["prog", "arg"])', "give a program and its arguments after --"),
    ("exc.result.stderr", "standard error"),
    ("memory_mb", "--memory-mb"),
    ("disk_mb", "--disk-mb"),
)


def in_options(error: SandboxError) -> SandboxError:
    """The same error, whose fix names options instead of arguments and methods.

    Example: `in_options(PathNotFound("no such file")).hint` names `ls` instead of `files.ls()`.
    """
    for phrase, words in _PHRASES:
        error.hint = error.hint.replace(phrase, words)
    return error
