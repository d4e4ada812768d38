"""What `sandboxio doctor` shows where E2B is installed and not in use."""

from __future__ import annotations

import pytest

from sandboxio_e2b import E2BBackend

pytestmark = [pytest.mark.anyio, pytest.mark.e2b]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("value", [None, "", "  "])
async def test_a_key_that_is_not_set_is_no_failure(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("E2B_API_KEY", value)
    sdk, key = await E2BBackend().diagnose()
    assert (sdk.name, sdk.status) == ("sdk", "ok")
    assert (key.name, key.status) == ("key", "warning")
    assert "E2B_API_KEY" in key.hint
