"""Every public name explains itself, with an example."""

from __future__ import annotations

import inspect

import pytest

import sandboxio

NAMES = [name for name in sandboxio.__all__ if name != "__version__"]


def public_methods() -> list[str]:
    return [
        f"{name}.{attribute}"
        for name in NAMES
        if inspect.isclass(cls := getattr(sandboxio, name))
        for attribute, member in vars(cls).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property | classmethod))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    words = getattr(sandboxio, name).__doc__ or ""
    assert "Example:" in words


@pytest.mark.parametrize("name", public_methods())
def test_a_public_method_has_a_docstring(name: str) -> None:
    owner, _, attribute = name.partition(".")
    assert vars(getattr(sandboxio, owner))[attribute].__doc__


def test_the_methods_of_public_classes_are_found() -> None:
    assert {"AsyncSandbox.run", "NetworkPolicy.permits", "EgressRule.parse"} <= {*public_methods()}
