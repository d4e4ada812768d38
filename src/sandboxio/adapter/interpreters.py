"""How code of a language is run where the provider has no way of its own: fed by standard input.

Feeding it as input has no limit of length, which an argument has. An interpreter that reads its
program as it goes would let the program eat its own rest, so shells read all of it first. Python
runs unbuffered: what it has printed when a deadline strikes is then on the exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["INTERPRETERS"]

_READ_ALL_FIRST: Final = 'eval "$(cat)"'

INTERPRETERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "python": ("python3", "-u", "-"),
        "javascript": ("node", "-"),
        "ruby": ("ruby", "-"),
        "perl": ("perl", "-"),
        "bash": ("bash", "-c", _READ_ALL_FIRST),
        "sh": ("sh", "-c", _READ_ALL_FIRST),
    }
)
