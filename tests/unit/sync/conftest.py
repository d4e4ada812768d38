"""No test may leave a thread behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .threads import our_threads


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    assert our_threads() == []
    yield
    assert our_threads() == []
