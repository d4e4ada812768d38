"""Fixes that name what a command line has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from sandboxio import AuditSinkError, ConfigurationError, ConnectError, SandboxError
from sandboxio.cli.hints import in_options

PYTHON = re.compile(r"\w\([^)]*\)|\b\w+=(?!NAME)|\bexc\.")


def concrete(base: type[SandboxError] = SandboxError) -> Iterator[type[SandboxError]]:
    for kind in base.__subclasses__():
        if kind.code and kind is not AuditSinkError:  # `run` has no sinks
            yield kind
        yield from concrete(kind)


@pytest.mark.parametrize("kind", list(dict.fromkeys(concrete())))
def test_no_general_fix_speaks_python(kind: type[SandboxError]) -> None:
    error: SandboxError = ConfigurationError("x", hint=kind.default_hint)
    assert not PYTHON.search(in_options(error).hint)


def test_one_that_does_would_be_noticed() -> None:
    assert PYTHON.search("list it with files.ls()")
    assert PYTHON.search("raise timeout=")


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("name it in SBX_IMAGE or template=", "name it in SBX_IMAGE or --backend docker://IMAGE"),
        ("raise Resources(memory_mb=…), or use less", "give --memory-mb more, or use less"),
        ("make the parent with files.mkdir(…, parents=True)", "make the parent with `mkdir -p`"),
        ("leave require_isolation out", "leave --require-isolation out"),
        ("start the engine", "start the engine"),
    ],
)
def test_a_fix_names_the_options(hint: str, shown: str) -> None:
    assert in_options(ConnectError("x", hint=hint)).hint == shown
