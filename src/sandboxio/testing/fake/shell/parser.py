"""From the tokens of a script to its tree."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from sandboxio.testing.fake.machine.calls import NotSimulatedError
from sandboxio.testing.fake.shell.lexer import Token, tokens
from sandboxio.testing.fake.shell.syntax import (
    AndOr,
    Command,
    For,
    Group,
    If,
    Job,
    Part,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    Simple,
    Word,
)

__all__ = ["parse_script"]

_REFUSED: Final = ("while", "until", "case", "function", "select", "[[", "time", "coproc")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


def parse_script(text: str) -> Script:
    """Read a script. What the fake does not know is refused by name, never misread.

    Raises:
        ShellSyntaxError: It is none.
        NotSimulatedError: It uses a part of the language that the fake does not know.
    """
    parser = _Parser(tokens(text))
    script = parser.script(())
    if parser.peek() is not None:
        raise ShellSyntaxError(f"syntax error near {parser.peek()!r}")
    return script


def _with_scripts(word: Word) -> Word:
    """A word whose `$(…)` are parsed, so that what is unknown in them is refused before anything runs."""
    parts = [
        replace(part, script=parse_script(part.text)) if part.kind == "output" else part
        for part in word.parts
    ]
    return Word(tuple(parts))


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = [_with_scripts(token) if isinstance(token, Word) else token for token in tokens]
        self._next = 0

    def peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _bare(self) -> str | None:
        token = self.peek()
        return token.bare if isinstance(token, Word) else None

    def _take(self) -> Token:
        token = self.peek()
        if token is None:
            raise ShellSyntaxError("the script ends early")
        self._next += 1
        return token

    def _expect(self, word: str) -> None:
        token = self._take()
        found = token.bare if isinstance(token, Word) else token
        if found != word:
            raise ShellSyntaxError(f"{word} expected")

    def _skip_lines(self) -> None:
        while self.peek() in ("\n", ";"):
            self._next += 1

    def script(self, ends: tuple[str, ...]) -> Script:
        jobs: list[Job] = []
        self._skip_lines()
        while self.peek() not in (None, ")") and self._bare() not in ends:
            and_or = self._and_or()
            separator = self.peek()
            background = separator == "&"
            jobs.append(Job(and_or, background))
            if separator in ("&", ";", "\n"):
                self._next += 1
                self._skip_lines()
            elif separator is not None and separator != ")" and self._bare() not in ends:
                raise ShellSyntaxError("a separator expected")
        return Script(tuple(jobs))

    def _and_or(self) -> AndOr:
        pipelines = [("", self._pipeline())]
        while (operator := self.peek()) in ("&&", "||"):
            self._next += 1
            while self.peek() == "\n":
                self._next += 1
            pipelines.append((str(operator), self._pipeline()))
        return AndOr(tuple(pipelines))

    def _pipeline(self) -> Pipeline:
        negated = self._bare() == "!"
        if negated:
            self._next += 1
        commands = [self._command()]
        while self.peek() == "|":
            self._next += 1
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        opener = self._bare()
        if opener in _REFUSED:
            raise NotSimulatedError(f"the shell's {opener}")
        if self.peek() == "(":
            self._next += 1
            body = self.script(())
            self._expect(")")
            return Group(body, True, self._redirects())
        if opener == "{":
            self._next += 1
            body = self.script(("}",))
            self._expect("}")
            return Group(body, False, self._redirects())
        if opener == "if":
            return self._if()
        if opener == "for":
            return self._for()
        return self._simple()

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        while self._bare() in ("if", "elif"):
            self._next += 1
            condition = self.script(("then",))
            self._expect("then")
            branches.append((condition, self.script(("elif", "else", "fi"))))
        if self._bare() == "else":
            self._next += 1
            otherwise = self.script(("fi",))
        self._expect("fi")
        return If(tuple(branches), otherwise, self._redirects())

    def _for(self) -> For:
        self._next += 1
        token = self._take()
        name = token.bare if isinstance(token, Word) else None
        if name is None or not _NAME.fullmatch(name):
            raise ShellSyntaxError("a name expected after for")
        self._expect("in")
        words: list[Word] = []
        while isinstance(word := self.peek(), Word):
            words.append(word)
            self._next += 1
        self._skip_lines()
        self._expect("do")
        body = self.script(("done",))
        self._expect("done")
        return For(name, tuple(words), body, self._redirects())

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            token = self.peek()
            if isinstance(token, Word):
                self._next += 1
                assigned = None if words else _assignment(token)
                if assigned is None:
                    words.append(token)
                else:
                    assignments.append(assigned)
            elif (redirect := self._redirect()) is not None:
                redirects.append(redirect)
            else:
                break
        if self.peek() == "(":
            raise NotSimulatedError("the shell's functions")
        if not (assignments or words or redirects):
            raise ShellSyntaxError(f"syntax error near {self.peek()!r}")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
        return tuple(redirects)

    def _redirect(self) -> Redirect | None:
        token = self.peek()
        if isinstance(token, tuple):
            descriptor, operator = token
        elif token in ("<", ">", ">>", "<&", ">&"):
            operator = str(token)
            descriptor = 0 if operator.startswith("<") else 1
        else:
            return None
        self._next += 1
        target = self._take()
        if not isinstance(target, Word):
            raise ShellSyntaxError("a redirection without a target")
        return Redirect(descriptor, operator, target)


def _assignment(word: Word) -> tuple[str, Word] | None:
    first = word.parts[0] if word.parts else None
    if first is None or first.quoted or first.kind != "text":
        return None
    found = _ASSIGNMENT.match(first.text)
    if found is None:
        return None
    rest = Part(first.text[found.end() :], quoted=False)
    return found[1], Word((rest, *word.parts[1:]))
