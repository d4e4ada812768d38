"""What code of the very small Python handles beside plain values: functions, modules and objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import NotSimulatedError

__all__ = ["METHODS", "Native", "Thing", "natives", "nothing"]

METHODS: Final[Mapping[type, frozenset[str]]] = MappingProxyType(
    {
        str: frozenset(
            (
                *(
                    "upper",
                    "lower",
                    "title",
                    "capitalize",
                    "strip",
                    "lstrip",
                    "rstrip",
                    "split",
                    "splitlines",
                ),
                *(
                    "join",
                    "replace",
                    "startswith",
                    "endswith",
                    "encode",
                    "isdigit",
                    "isalpha",
                    "find",
                    "count",
                ),
                *("removeprefix", "removesuffix", "partition"),
            )
        ),
        bytes: frozenset(
            ("decode", "hex", "split", "strip", "startswith", "endswith", "find", "count", "join")
        ),
        list: frozenset(
            (
                "append",
                "extend",
                "insert",
                "pop",
                "remove",
                "sort",
                "reverse",
                "index",
                "count",
                "copy",
                "clear",
            )
        ),
        dict: frozenset(("get", "keys", "values", "items", "update", "pop", "setdefault", "copy", "clear")),
        set: frozenset(("add", "discard", "remove", "union", "intersection", "difference", "update")),
        tuple: frozenset(("index", "count")),
    }
)
"""The methods of plain values that code can call."""


@dataclass(frozen=True, slots=True)
class Native:
    """A function that code can call; one that waits is a generator function."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, repr=False)
class Thing:
    """A module or an object, as far as the fake has it."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def attribute(self, name: str) -> Any:
        """One attribute.

        Raises:
            NotSimulatedError: The fake does not have it.
        """
        if name not in self.attributes:
            raise NotSimulatedError(f"Python's {self.name}.{name}")
        return self.attributes[name]


def natives(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Functions under their own names, without the underscore that keeps a name free here."""
    return {name: Native(name, function) for function in functions if (name := function.__name__.strip("_"))}


def nothing(*arguments: Any) -> None:
    """A call without effect here, such as a flush."""
