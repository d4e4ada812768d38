"""What a diagnosis must not show, since it is made to be pasted where strangers read it.

Names of variables are shown, and neither their values nor where somebody's home is. What a provider
says is free text, so it is gone through before it enters a report.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.diagnosis.report import Check

__all__ = ["relevant_variables", "without_private_values"]

_SHORTEST_VALUE: Final = 4  # shorter ones are switches such as 1 or off, which occur in any text
_LONGEST_WORD: Final = 11  # a longer value is no word that could be part of another by chance
_PROXIES: Final = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})
_HOME: Final = re.compile(r"/(?:home|Users)/[^/\s:'\"]+")
_ENGINE_ADDRESS: Final = re.compile(r"\b(tcp|ssh)://[^\s,;)'\"]+")
_SIGNED_IN_ADDRESS: Final = re.compile(r"\b([a-z][a-z0-9+.-]*)://[^\s@]*@[^\s,;)'\"]*")
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL", re.IGNORECASE)


def relevant_variables(backends: Iterable[str]) -> tuple[str, ...]:
    """The names, sorted, of the variables that are set and bear on what these backends do.

    Example: `relevant_variables(["docker"])` may give `("DOCKER_HOST", "SBX_DEBUG")`.
    """
    prefixes = ("SBX_", *(f"{name.upper().replace('-', '_')}_" for name in backends))
    return tuple(sorted(name for name in os.environ if name.startswith(prefixes) or name.upper() in _PROXIES))


def without_private_values(check: Check, variables: Iterable[str]) -> Check:
    """The check with `$NAME` for the value of a variable, `~` for a home, and no address of an engine.

    Args:
        check: What a backend found.
        variables: The names of the variables whose values must not be shown.
    """
    return replace(check, detail=_cleaned(check.detail, variables), hint=_cleaned(check.hint, variables))


def _cleaned(text: str, variables: Iterable[str]) -> str:
    text = _with_names(text, variables)
    home = str(Path("~").expanduser())
    if len(home) > 1:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    text = _HOME.sub("~", text)
    return _ENGINE_ADDRESS.sub(r"\1://…", _SIGNED_IN_ADDRESS.sub(r"\1://…", text))


def _with_names(text: str, variables: Iterable[str]) -> str:
    """The text with `$NAME` for values, found in one pass so that no name is taken for a value."""
    named = {form: name for name in variables for form in _forms(os.environ.get(name, "").strip())}
    if not named:
        return text
    longest_first = sorted(named, key=len, reverse=True)
    patterns = (f"({_pattern(form, named[form])})" for form in longest_first)
    values = re.compile("|".join(patterns))
    return values.sub(lambda match: f"${named[longest_first[(match.lastindex or 1) - 1]]}", text)


def _forms(value: str) -> Iterable[str]:
    """A value, and of an address with a user what says who that is."""
    user, at, _ = value.rpartition("@")
    user = user.rpartition("://")[2]
    forms = (value, value.partition("://")[2], user, user.partition(":")[2]) if at else (value,)
    return (form for form in forms if len(form) >= _SHORTEST_VALUE)


def _pattern(form: str, name: str) -> str:
    """What finds a value, also where an error was put into one line or shows it quoted."""
    runs = [(stays, "".join(run)) for stays, run in groupby(form, _stays_in_a_line)]
    found = "".join(
        re.escape(run).replace(r"\\", r"\\{1,2}")
        if stays
        else rf"(?:{re.escape(run)}|[\s\ufffd]+|(?:\\\w{{1,9}})+)"
        for stays, run in runs
    )
    if len(form) > _LONGEST_WORD or _is_secret(name):
        return found
    return rf"(?<!\w){found}(?!\w)"


def _stays_in_a_line(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def _is_secret(name: str) -> bool:
    known = (variable for row in KNOWN_BACKENDS.values() for variable in row.credentials)
    return name in known or _SECRET_NAME.search(name) is not None
