"""What `connect` takes, and that its handle ends nothing."""

from __future__ import annotations

from typing import Any

import pytest

import sandboxio
from sandboxio import ConfigurationError

from .recording import RecordingConfig, the_backend


async def test_connecting_gives_a_handle_that_ends_nothing() -> None:
    async with sandboxio.connect("recording://", "abc") as sandbox:
        assert sandbox.id == "sandbox-1"
    assert the_backend().log == ["connect abc", "enter", "exit"]


@pytest.mark.parametrize("sandbox_id", ["", None, 3])
async def test_an_id_is_text(sandbox_id: Any) -> None:
    with pytest.raises(ConfigurationError, match="sandbox id"):
        await sandboxio.connect("recording://", sandbox_id)


@pytest.mark.parametrize(
    ("target", "part"), [("recording://img", "template"), ("recording://?timeout=5", "timeout")]
)
async def test_what_would_be_ignored_in_a_connection_is_refused(target: str, part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the target has a {part}"):
        await sandboxio.connect(target, "abc")
    assert the_backend().log == []


async def test_a_configuration_with_a_template_serves_connections_too() -> None:
    await sandboxio.connect(RecordingConfig("img"), "abc")
    assert the_backend().log == ["connect abc"]
