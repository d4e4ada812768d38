"""Variables of a shell, and how a word becomes fields: parameters, output of scripts, splitting, patterns."""

from __future__ import annotations

import glob
from collections.abc import Generator, Sequence
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Call, NotSimulatedError
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.shell.program import matching_names
from sandboxio.testing.fake.shell.syntax import Part, Script, Word

__all__ = ["Expander"]

_SPACE: Final = " \t\n"
_MAGIC: Final = frozenset("*?[")


class Expander:
    """The variables of one shell, or of a subshell of `parent`, and the expansion of words."""

    def __init__(self, process: Process, arguments: Sequence[str], parent: Expander | None) -> None:
        self._process = process
        self.arguments: Sequence[str] = parent.arguments if parent else arguments
        self.locals: dict[str, str] = dict(parent.locals) if parent else {}
        self.shell_pid: int = parent.shell_pid if parent else process.pid
        self.last_job: str = parent.last_job if parent else ""
        self.status: int = parent.status if parent else 0

    def _set(self, name: str, value: str) -> None:
        if name in self._process.variables:
            self._process.variables[name] = value
        else:
            self.locals[name] = value

    def _get(self, name: str) -> str:
        if name.isdecimal():
            return self.arguments[int(name)] if int(name) < len(self.arguments) else ""
        special = {"?": str(self.status), "$": str(self.shell_pid), "!": self.last_job}
        special |= {"#": str(max(len(self.arguments) - 1, 0)), "@": " ".join(self.arguments[1:])}
        special["*"] = special["@"]
        return special.get(name) or self.locals.get(name, self._process.variables.get(name, ""))

    def _expand_one(self, word: Word) -> Generator[Call, Any, str]:
        text = ""
        for part in word.parts:
            text += yield from self._value(part)
        return text

    def _expand_all(self, words: Sequence[Word]) -> Generator[Call, Any, list[str]]:
        expanded: list[str] = []
        for word in words:
            for text, pattern in (yield from self._fields(word)):
                names = self._matching(pattern) if pattern is not None else []
                expanded += names or [text]
        return expanded

    def _fields(self, word: Word) -> Generator[Call, Any, list[tuple[str, str | None]]]:
        """The fields that a word becomes, each with its pattern if it may stand for names of files."""
        fields: list[list[str]] = []
        magic: list[bool] = []
        joined = False
        for part in word.parts:
            value = yield from self._value(part)
            if part.quoted or part.kind == "text":
                pieces, breaks = [value], (False, False)
            else:
                pieces = value.split()
                breaks = (value[:1] in _SPACE if value else False, value[-1:] in _SPACE if value else False)
            for index, piece in enumerate(pieces):
                if not fields or not joined or index or (breaks[0] and not index):
                    fields.append(["", ""])
                    magic.append(False)
                fields[-1][0] += piece
                fields[-1][1] += glob.escape(piece) if part.quoted else piece
                magic[-1] |= not part.quoted and not _MAGIC.isdisjoint(piece)
                joined = True
            if breaks[1]:
                joined = False
        return [
            (text, pattern if wild else None) for (text, pattern), wild in zip(fields, magic, strict=True)
        ]

    def _matching(self, pattern: str) -> list[str]:
        head, slash, last = pattern.rpartition("/")
        if not _MAGIC.isdisjoint(head):
            raise NotSimulatedError("patterns in the folder part of a path")
        try:
            folder = self._process.kernel.tree.folder(self._process.path(head or ("/" if slash else ".")))
        except OSError:
            return []
        return [f"{head}{slash}{name}" for name in matching_names(list(folder.entries), last)]

    def _value(self, part: Part) -> Generator[Call, Any, str]:
        if part.kind == "parameter":
            return self._get(part.text)
        if part.script is None:
            return part.text
        return (yield from self._output_of(part.script))

    def _output_of(self, script: Script) -> Generator[Call, Any, str]:
        """What a script writes; the shell knows how to run it."""
        raise NotImplementedError
