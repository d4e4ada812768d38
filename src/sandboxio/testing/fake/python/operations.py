"""Operators of the very small Python, with a limit where a result would be a burden to the host."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from sandboxio.testing.fake.machine.calls import NotSimulatedError, OutOfMemoryError

__all__ = ["COMPARE", "CONVERSIONS", "UNARY", "binary", "is_one_of", "kind_of"]

_BITS: Final = 1_000_000
_ITEMS: Final = 64 * 1024 * 1024


def _operation(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(operator, name)
    return found


def _contains(item: Any, items: Any) -> bool:
    return bool(item in items)


def _lacks(item: Any, items: Any) -> bool:
    return bool(item not in items)


_BINARY: Final[Mapping[type[ast.operator], Callable[..., Any]]] = MappingProxyType(
    {
        ast.Add: _operation("add"),
        ast.Sub: _operation("sub"),
        ast.Mult: _operation("mul"),
        ast.Div: _operation("truediv"),
        ast.FloorDiv: _operation("floordiv"),
        ast.Mod: _operation("mod"),
        ast.Pow: _operation("pow"),
        ast.LShift: _operation("lshift"),
        ast.RShift: _operation("rshift"),
        ast.BitAnd: _operation("and_"),
        ast.BitOr: _operation("or_"),
        ast.BitXor: _operation("xor"),
    }
)
UNARY: Final[Mapping[type[ast.unaryop], Callable[..., Any]]] = MappingProxyType(
    {
        ast.UAdd: _operation("pos"),
        ast.USub: _operation("neg"),
        ast.Not: _operation("not_"),
        ast.Invert: _operation("invert"),
    }
)
COMPARE: Final[Mapping[type[ast.cmpop], Callable[..., Any]]] = MappingProxyType(
    {
        ast.Eq: _operation("eq"),
        ast.NotEq: _operation("ne"),
        ast.Lt: _operation("lt"),
        ast.LtE: _operation("le"),
        ast.Gt: _operation("gt"),
        ast.GtE: _operation("ge"),
        ast.Is: _operation("is_"),
        ast.IsNot: _operation("is_not"),
        ast.In: _contains,
        ast.NotIn: _lacks,
    }
)
CONVERSIONS: Final[Mapping[int, Callable[[object], str]]] = MappingProxyType(
    {ord("r"): repr, ord("s"): str, ord("a"): ascii}
)


def is_one_of(value: Any, *kinds: type) -> bool:
    """`isinstance`, for values of which nothing is known and nothing is to be narrowed."""
    return isinstance(value, kinds)


def kind_of(value: Any) -> Any:
    """`type`, of which nothing is known either."""
    return cast("Any", type(value))


def binary(kind: ast.operator, left: Any, right: Any) -> Any:
    """One operation, unless its result would be a burden to the host."""
    if isinstance(kind, (ast.Pow, ast.LShift)) and isinstance(left, int) and isinstance(right, int):
        bits = right + left.bit_length() if isinstance(kind, ast.LShift) else right * left.bit_length()
        if bits > _BITS:
            raise NotSimulatedError("Python's numbers of more than a million bits")
    if isinstance(kind, ast.Mult) and max(_repeated(left, right), _repeated(right, left)) > _ITEMS:
        raise OutOfMemoryError
    return _BINARY[type(kind)](left, right)


def _repeated(sequence: Any, count: Any) -> int:
    """How many items a sequence has that is repeated so often; 0 if it is none."""
    repeats = is_one_of(sequence, str, bytes, list, tuple) and is_one_of(count, int)
    return len(sequence) * count if repeats else 0
