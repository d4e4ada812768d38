"""From the text of a script to its tokens."""

from __future__ import annotations

import re
from typing import Final

from sandboxio.testing.fake.machine.calls import NotSimulatedError
from sandboxio.testing.fake.shell.syntax import Part, ShellSyntaxError, Word

__all__ = ["Token", "tokens"]

_OPERATORS: Final = ("&&", "||", ";;", "<<", ">>", "<&", ">&", "&", "|", ";", "<", ">", "(", ")", "\n")
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9?$!#@*]")
_REDIRECTION: Final = re.compile(r"([0-9])(>>|>&|<&|>|<)")

Token = str | Word | tuple[int, str]
"""An operator, a word, or the redirection operator with the descriptor that stood before it."""


def tokens(text: str) -> list[Token]:
    """Cut a script into operators and words.

    Raises:
        ShellSyntaxError: Something that was opened is not closed.
        NotSimulatedError: It uses a part of the language that the fake does not know.
    """
    found: list[Token] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char in " \t":
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif char == "#":
            position = len(text) if (end := text.find("\n", position)) < 0 else end
        elif number := _REDIRECTION.match(text, position):
            found.append((int(number[1]), number[2]))
            position = number.end()
        elif operator := next((op for op in _OPERATORS if text.startswith(op, position)), None):
            if operator in ("<<", ";;"):
                raise NotSimulatedError(f"the shell's {operator}")
            found.append(operator)
            position += len(operator)
        else:
            word, position = _word(text, position)
            found.append(word)
    return found


def _word(text: str, position: int) -> tuple[Word, int]:
    parts: list[Part] = []
    while position < len(text):
        char = text[position]
        if char in " \t\n;&|<>()":
            break
        if char == "'":
            end = _closing(text, "'", position + 1)
            parts.append(Part(text[position + 1 : end], quoted=True))
            position = end + 1
        elif char == '"':
            position = _double_quoted(text, position + 1, parts)
        elif char == "\\":
            parts.append(Part(text[position + 1 : position + 2], quoted=True))
            position += 2
        elif char in "$`":
            position = _expansion(text, position, parts, quoted=False)
        else:
            end = position
            while end < len(text) and text[end] not in " \t\n;&|<>()'\"\\$`":
                end += 1
            parts.append(Part(text[position:end], quoted=False))
            position = end
    return Word(tuple(parts)), position


def _double_quoted(text: str, position: int, parts: list[Part]) -> int:
    literal = ""
    parts.append(Part("", quoted=True))
    while position < len(text):
        char = text[position]
        if char == '"':
            parts.append(Part(literal, quoted=True))
            return position + 1
        if char == "\\" and text[position + 1 : position + 2] in ("$", "`", '"', "\\"):
            literal += text[position + 1]
            position += 2
        elif text.startswith("\\\n", position):
            position += 2
        elif char in "$`":
            parts.append(Part(literal, quoted=True))
            literal = ""
            position = _expansion(text, position, parts, quoted=True)
        else:
            literal += char
            position += 1
    raise ShellSyntaxError("unterminated quoted string")


def _expansion(text: str, position: int, parts: list[Part], *, quoted: bool) -> int:
    if text[position] == "`":
        raise NotSimulatedError("the shell's backquotes; write $(…)")
    if text.startswith("$((", position):
        raise NotSimulatedError("the shell's arithmetic")
    if text.startswith("$(", position):
        end = _matching_parenthesis(text, position + 2)
        parts.append(Part(text[position + 2 : end], quoted, "output"))
        return end + 1
    if text.startswith("${", position):
        end = _closing(text, "}", position + 2)
        name = text[position + 2 : end]
        if not _PARAMETER.fullmatch(name):
            raise NotSimulatedError(f"the shell's ${{{name}}}")
        parts.append(Part(name, quoted, "parameter"))
        return end + 1
    found = _PARAMETER.match(text, position + 1)
    if found is None:
        parts.append(Part("$", quoted))
        return position + 1
    parts.append(Part(found[0], quoted, "parameter"))
    return found.end()


def _closing(text: str, mark: str, position: int) -> int:
    end = text.find(mark, position)
    if end < 0:
        raise ShellSyntaxError(f"{mark} is missing")
    return end


def _matching_parenthesis(text: str, position: int) -> int:
    depth = 1
    while position < len(text):
        char = text[position]
        if char == "'":
            position = _closing(text, "'", position + 1)
        elif char == "\\":
            position += 1
        elif char in "()":
            depth += 1 if char == "(" else -1
            if not depth:
                return position
        position += 1
    raise ShellSyntaxError(") is missing")
