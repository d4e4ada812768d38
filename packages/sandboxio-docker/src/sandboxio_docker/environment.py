"""The caller's variables on their way to a command, past everything of the adapter's own.

A variable can take over a program before its first line: `LD_PRELOAD`, `LD_LIBRARY_PATH`, a bash's
`SHELLOPTS`; and `PATH` says what a name means. A caller may want that for a command. The first
process, what puts a number on an execution and makes it nice, file scripts and the script that ends a tree
must not depend on it, since what such a variable points at may be the work of hostile code. So the
variables travel as the values of others whose names mean nothing to anybody, and become themselves
in the last moment before the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["assignments", "carried", "stored", "stored_form", "stored_names"]

_PREFIX: Final = "SANDBOXIO_ENV_"
_COUNT: Final = "SANDBOXIO_ENV"


def carried(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with which `env` travels."""
    return {f"{_PREFIX}{number}": f"{name}={value}" for number, (name, value) in enumerate(env.items())}


def assignments(count: int) -> str:
    """Shell that turns what `count` variables carry into variables.

    A shell refuses to set some of its own, such as bash's `UID`. `command` keeps it from ending over that.
    """
    return "".join(
        f'command export "${_PREFIX}{number}" 2>/dev/null; unset {_PREFIX}{number}\n'
        for number in range(count)
    )


def stored_form(env: Mapping[str, str]) -> list[str]:
    """The entries that keep `env` in a container's description, from where a connected handle takes it.

    The number is among them, as an image made from a sandbox brings entries of that one.
    """
    return [f"{_COUNT}={len(env)}", *(f"{name}={pair}" for name, pair in carried(env).items())]


def stored(entries: Iterable[object]) -> dict[str, str]:
    """What `stored_form` kept among the entries of a container's description."""
    told = dict(entry.split("=", 1) for entry in entries if isinstance(entry, str) and "=" in entry)
    count = told.get(_COUNT, "")
    if not count.isascii() or not count.isdecimal() or len(count) > 6:
        return {}
    pairs = (told.get(f"{_PREFIX}{number}", "").partition("=") for number in range(int(count)))
    return {name: value for name, _, value in pairs if name}


def stored_names(env: Mapping[str, str]) -> list[str]:
    """The names of the entries of `stored_form`."""
    return [_COUNT, *carried(env)]
