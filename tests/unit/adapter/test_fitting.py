"""What Linux would not start is refused before anything is sent."""

from __future__ import annotations

import pytest

from sandboxio.adapter.validation import require_fitting
from sandboxio.errors import ConfigurationError

MOST = 128 * 1024 - 1


def test_what_linux_passes_is_let_through() -> None:
    require_fitting(["x" * MOST, "y" * MOST, ""], {"A": "v" * (MOST - 2), "é": "v" * (MOST - 3)})


@pytest.mark.parametrize("argument", ["x" * (MOST + 1), "é" * (MOST // 2 + 1)])
def test_an_argument_that_is_too_long_is_refused_by_its_bytes(argument: str) -> None:
    with pytest.raises(ConfigurationError, match=str(len(argument.encode()))) as caught:
        require_fitting(["sh", argument], {})
    assert "files.write()" in caught.value.hint


@pytest.mark.parametrize("name", ["TOKEN", "é"])
def test_a_variable_that_is_too_long_is_refused_by_its_name(name: str) -> None:
    value = "s" * (MOST - len(name.encode()))
    with pytest.raises(ConfigurationError, match=f"the variable {name}") as caught:
        require_fitting(["true"], {name: value})
    assert "sss" not in str(caught.value)
