"""The engine's JSON, read by one rule: what is not as it should be is an `UnexpectedAnswer`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from sandboxio_docker.errors import UnexpectedAnswer

__all__ = ["Answer", "answered_list", "answered_object"]


class Answer(dict[str, Any]):
    """A JSON object of the engine's.

    Raises:
        UnexpectedAnswer: A member that is asked for by `[]` is not there.

    Example: `answer.part("State")["Running"]`
    """

    def __missing__(self, key: str) -> Any:
        raise UnexpectedAnswer(f"the answer lacks {key!r}")

    def part(self, key: str) -> Answer:
        """The object at `key`."""
        return _require_object(self[key], repr(key))

    def members(self, key: str) -> Answer:
        """The object at `key`; empty where it is absent or null."""
        found = self.get(key)
        return Answer() if found is None else _require_object(found, repr(key))

    def texts(self, key: str) -> dict[str, str]:
        """What is text in the object at `key`; nothing where it is absent or null."""
        return {name: value for name, value in self.members(key).items() if isinstance(value, str)}

    def items_of(self, key: str) -> Sequence[object]:
        """The list at `key`; empty where it is absent or null."""
        found = self.get(key)
        return [] if found is None else _require_list(found, repr(key))

    def objects(self, key: str) -> Sequence[Answer]:
        """The objects at `key`; none where it is absent or null."""
        return [_require_object(each, f"a part of {key!r}") for each in self.items_of(key)]

    def number(self, key: str) -> int:
        """The whole number at `key`; 0 where it is absent or null."""
        found = self.get(key) or 0
        if not isinstance(found, int):
            raise UnexpectedAnswer(f"{key!r} is no number")
        return found


def answered_object(body: bytes) -> Answer:
    """The object that a body is."""
    return _require_object(_parsed(body), "the answer")


def answered_list(body: bytes) -> list[Answer]:
    """The list of objects that a body is."""
    found = _require_list(_parsed(body), "the answer")
    return [_require_object(each, "a part of the answer") for each in found]


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, object_hook=Answer)
    except (ValueError, RecursionError) as exc:
        raise UnexpectedAnswer("the answer is not JSON") from exc


def _require_object(value: object, what: str) -> Answer:
    if not isinstance(value, Answer):
        raise UnexpectedAnswer(f"{what} is no object")
    return value


def _require_list(value: Any, what: str) -> list[object]:
    if not isinstance(value, list):
        raise UnexpectedAnswer(f"{what} is no list")
    return cast("list[object]", value)
