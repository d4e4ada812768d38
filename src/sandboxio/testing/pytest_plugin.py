"""The pytest plugin of sandboxio: the fixture `sbx_fake`.

It is loaded by every pytest run where sandboxio is installed, so it imports next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandboxio.testing.fake import FakeBackend

__all__ = ["sbx_fake"]

pytest.register_assert_rewrite("sandboxio.testing.suite")


@pytest.fixture
def sbx_fake(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """A fake backend to which every target leads for the duration of the test.

    `sandboxio.create`, `connect` and their synchronous forms use it for `None`, for every DSN and
    for every configuration object; a DSN's template and timeout are kept. The registry of the
    process is replaced until the test ends, so no other backend is imported or needs to be
    installed. A backend object given as the target is used as it is.

    Example:
        def test_tool(sbx_fake):
            sbx_fake.on_run_code("import pandas", returns="42")
            assert my_tool() == "42"
    """
    from sandboxio import registry
    from sandboxio.testing.fake.everywhere import FakeRegistry

    fakes = FakeRegistry()
    monkeypatch.setattr(registry, "_registry", fakes)
    return fakes.fake
