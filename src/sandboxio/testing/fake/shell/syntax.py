"""The part of the POSIX shell's language that the fake understands, as a tree."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AndOr",
    "Command",
    "For",
    "Group",
    "If",
    "Job",
    "Part",
    "Pipeline",
    "Redirect",
    "Script",
    "ShellSyntaxError",
    "Simple",
    "Word",
]


class ShellSyntaxError(Exception):
    """The text is no shell script."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word: literal text, or with `kind` a parameter or a script whose output it is."""

    text: str
    quoted: bool
    kind: str = "text"
    script: Script | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """A word before its expansion."""

    parts: tuple[Part, ...]

    @property
    def bare(self) -> str | None:
        """Its text, if it is one unquoted literal."""
        if len(self.parts) == 1 and self.parts[0].kind == "text" and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`descriptor operator target`, such as `2>&1`."""

    descriptor: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments and a command with its arguments."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ …; }` or, as a subshell, `( … )`."""

    body: Script
    subshell: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class If:
    """`if …; then …; else …; fi`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words; do …; done`."""

    name: str
    words: tuple[Word, ...]
    body: Script
    redirects: tuple[Redirect, ...]


Command = Simple | Group | If | For


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`."""

    commands: tuple[Command, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class AndOr:
    """Pipelines joined by `&&` and `||`; the first has the operator `""`."""

    pipelines: tuple[tuple[str, Pipeline], ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A list entry, in the background or not."""

    and_or: AndOr
    background: bool


@dataclass(frozen=True, slots=True)
class Script:
    """A list of jobs."""

    jobs: tuple[Job, ...]
