"""The shell around each command: it sets the command apart, and says in-band how its leader ended.

The SDK gives every command to `/bin/bash -l -c`, and tells of its end only once nobody holds its pipes
any more, which a child in the background can do for ever. So the command runs as a child of that shell,
which writes a status line behind the command's own standard error: a record separator, a word that
nobody else knows beforehand, and the exit code. A process of the sandbox that finds the word out can
lie about its own end and no more: what it leaves running, it could leave running anyway.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from sandboxio.adapter.driver import Exit
from sandboxio.adapter.tree_kill import MARKER_VARIABLE

__all__ = ["SHELL", "StatusFilter", "wrap"]

SHELL: Final = "/bin/sh"
"""What runs text, as on other backends; the login shell around it is the SDK's."""

_SEPARATOR: Final = b"\x1e"
_MISSING: Final = b"missing"
_LONGEST_WORD: Final = 16
_CODE: Final = re.compile(rb"1?\d{1,2}|2[0-4]\d|25[0-5]")

# A login shell's profile replaces variables such as PATH, so all are put back as they were given.
_RESTORE: Final = r"""
while IFS= read -r -d '' _sandboxio_pair; do
    case $_sandboxio_pair in
    HOME=* | BASH_ENV=* | PWD=* | OLDPWD=* | SHLVL=* | _=*) ;;
    *) export -- "$_sandboxio_pair" ;;
    esac
done 2>/dev/null </proc/$$/environ
"""

# What the login shell itself says, such as "Killed" of the command, belongs to nobody.
_WRAPPER: Final = r"""set +e -- {arguments}
{hidden}{restore}
ulimit -x {marker} 2>/dev/null && unset {variable}
exec {{_sandboxio_err}}>&2 2>/dev/null
case $1 in
*/*) [ -e "$1" ] ;;
*) type -P -- "$1" >/dev/null ;;
esac || {{
    printf '%s: not found\n\036{word} missing\n' "$1" >&"$_sandboxio_err"
    exit 127
}}
(
    exec 2>&"$_sandboxio_err" {{_sandboxio_err}}>&-
    exec -- "$@"
)
code=$?
printf '\036{word} %d\n' "$code" >&"$_sandboxio_err"
exit "$code"
"""


def wrap(
    command: str | Sequence[str],
    marker: str,
    word: str,
    hidden: Mapping[str, str | None],
    *,
    restore: bool = True,
) -> str:
    """The line for the SDK that runs a command under a number.

    Args:
        command: Text for the shell, or a program with its arguments.
        marker: The execution's number.
        word: What its status line begins with.
        hidden: Variables that the login shell is not told, so that it reads no file of the user's, with
            their values; `None` unsets.
        restore: Whether variables were given that a profile may have replaced.

    Example: `wrap(["echo", "hi"], numbers.next(), secrets.token_hex(16), {"HOME": "/home/user"})`
    """
    argv = (SHELL, "-c", command) if isinstance(command, str) else command
    return _WRAPPER.format(
        arguments=shlex.join(argv),
        hidden="; ".join(_assignment(name, value) for name, value in hidden.items()),
        restore=_RESTORE if restore else "",
        marker=marker,
        variable=MARKER_VARIABLE,
        word=word,
    )


class StatusFilter:
    """Takes the status line out of a standard error that comes in pieces.

    Args:
        word: The word that begins it.

    Attributes:
        exit: How the leader ended, once the line has come.
    """

    def __init__(self, word: str) -> None:
        self._start = _SEPARATOR + word.encode() + b" "
        self._held = b""
        self.exit: Exit | None = None

    def feed(self, data: bytes) -> bytes:
        """What of it and of what was held is the command's own output."""
        if self.exit is not None:
            return data
        data, self._held = self._held + data, b""
        position = 0
        while (begin := data.find(self._start, position)) >= 0:
            position = begin + len(self._start)
            end = data.find(b"\n", position, position + _LONGEST_WORD)
            if end < 0 and len(data) - position < _LONGEST_WORD:
                self._held = data[begin:]
                return data[:begin]
            self.exit = _exit(data[position:end]) if end >= 0 else None
            if self.exit is not None:
                return data[:begin] + data[end + 1 :]
        keep = self._length_of_beginning(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def flush(self) -> bytes:
        """What was held and turned out to be no status line."""
        held, self._held = self._held, b""
        return held

    def _length_of_beginning(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of a status line."""
        begin = data.rfind(_SEPARATOR, max(0, len(data) - len(self._start) + 1))
        return len(data) - begin if begin >= 0 and self._start.startswith(data[begin:]) else 0


def _exit(status: bytes) -> Exit | None:
    """What the rest of a status line says, or `None` when it is none."""
    if status == _MISSING:
        return Exit(127, missing=True)
    return Exit(int(status)) if _CODE.fullmatch(status) else None


def _assignment(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
