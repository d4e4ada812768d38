"""What a diagnosis must not show, since it is made to be pasted where strangers read it.

Names of variables are shown, and neither their values nor where somebody's home is. What a provider
says is free text, so it is gone through before it enters a report.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from sandboxio.diagnosis.report import Check

__all__ = ["relevant_variables", "without_private_values"]

_SHORTEST_VALUE: Final = 4  # shorter ones are switches such as 1 or off, which occur in any text
_PROXIES: Final = frozenset({"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})
_HOME: Final = re.compile(r"/(?:home|Users)/[^/\s:'\"]+")
_ENGINE_ADDRESS: Final = re.compile(r"\b(tcp|ssh)://[^\s,;)'\"]+")


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
    values = {os.environ.get(name, "").strip(): name for name in variables}
    for value, name in sorted(values.items(), key=lambda item: -len(item[0])):
        if len(value) >= _SHORTEST_VALUE:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"${name}", text)
    home = str(Path("~").expanduser())
    if len(home) > 1:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return _ENGINE_ADDRESS.sub(r"\1://…", _HOME.sub("~", text))
