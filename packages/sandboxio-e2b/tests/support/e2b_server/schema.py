"""Strict reading of JSON: an unknown field, a missing one or a wrong type is an error.

A check takes a value and the place it stands at, and returns what it means.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "Check",
    "Malformed",
    "boolean",
    "decoded",
    "each",
    "mapping",
    "nothing",
    "one_of",
    "optional",
    "read",
    "record",
    "text",
    "texts",
    "whole",
]

type_name = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}

Check = Callable[[Any, str], Any]


class Malformed(Exception):
    """JSON that is not what was asked for; the text says where and why."""


def read(raw: bytes, check: Check) -> Any:
    """Parse a whole body and check it."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise Malformed(f"the body is not JSON: {error}") from error
    return check(value, "body")


def record(
    required: Mapping[str, Check] | None = None, optional: Mapping[str, Check] | None = None
) -> Callable[[Any, str], dict[str, Any]]:
    """An object with these fields and no others."""
    needed, allowed = required or {}, optional or {}

    def check(value: Any, where: str) -> dict[str, Any]:
        fields = _expect(value, dict, where)
        if unknown := fields.keys() - needed.keys() - allowed.keys():
            raise Malformed(f"{where}: unknown field {min(unknown)!r}")
        if missing := needed.keys() - fields.keys():
            raise Malformed(f"{where}: missing field {min(missing)!r}")
        return {
            name: (needed.get(name) or allowed[name])(item, f"{where}.{name}")
            for name, item in fields.items()
        }

    return check


def one_of(fields: Mapping[str, Check]) -> Callable[[Any, str], dict[str, Any]]:
    """An object with exactly one of these fields."""
    members = record(optional=fields)

    def check(value: Any, where: str) -> dict[str, Any]:
        chosen = members(value, where)
        if len(chosen) != 1:
            raise Malformed(f"{where}: expected exactly one of {sorted(fields)}")
        return chosen

    return check


def mapping(value: Any, where: str) -> dict[str, str]:
    """An object whose values are strings."""
    return {name: text(item, f"{where}.{name}") for name, item in _expect(value, dict, where).items()}


def each(check_item: Check) -> Callable[[Any, str], list[Any]]:
    """An array of what `check_item` accepts."""

    def check(value: Any, where: str) -> list[Any]:
        return [check_item(item, f"{where}[{at}]") for at, item in enumerate(_expect(value, list, where))]

    return check


def optional(check_value: Check) -> Check:
    """`null`, or what `check_value` accepts."""
    return lambda value, where: None if value is None else check_value(value, where)


def text(value: Any, where: str) -> str:
    """A string."""
    string: str = _expect(value, str, where)
    return string


texts = each(text)


def boolean(value: Any, where: str) -> bool:
    """`true` or `false`."""
    flag: bool = _expect(value, bool, where)
    return flag


def whole(minimum: int, maximum: int) -> Callable[[Any, str], int]:
    """An integer within bounds."""

    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Malformed(f"{where}: expected an integer, got {_described(value)}")
        if not minimum <= value <= maximum:
            raise Malformed(f"{where}: {value} is not between {minimum} and {maximum}")
        return value

    return check


def decoded(value: Any, where: str) -> bytes:
    """Bytes, in base64."""
    try:
        return base64.b64decode(text(value, where), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"{where}: not base64: {error}") from error


def nothing(_value: Any, where: str) -> Any:
    """A field that the service has and this server does not do."""
    raise Malformed(f"{where}: not available on this server")


def _expect(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise Malformed(f"{where}: expected {type_name[kind]}, got {_described(value)}")
    return value


def _described(value: Any) -> str:
    return "null" if value is None else type_name.get(type(value), type(value).__name__)
