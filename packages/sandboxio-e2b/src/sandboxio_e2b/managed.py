"""What sandboxio made in an account: finding it again, describing it, ending it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
from e2b import SandboxInfo
from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.provision import LABEL_CREATION, LABEL_MANAGED
from sandboxio.errors import ConnectError, SandboxGone
from sandboxio.models import ManagedSandbox
from sandboxio_e2b.inventory import labels_of, list_labelled

__all__ = ["callers_metadata", "describe", "kill_created", "kill_managed", "list_managed"]

_OUR_PREFIX: Final = "sandboxio."
_SETTLE_TRIES: Final = 8
_SETTLE_PAUSE: Final = 0.5


async def describe(sandbox_id: str, options: Mapping[str, Any]) -> SandboxInfo:
    """A running sandbox by its id.

    Raises:
        SandboxGone: There is none of this id, or it does not run.
        ConnectError: sandboxio did not make it.
    """
    info = await _info(sandbox_id, options)
    if info.state.value != "running":
        raise SandboxGone(f"the E2B sandbox {sandbox_id[:40]} is {info.state.value}")
    return info


async def list_managed(options: Mapping[str, Any], backend: str) -> tuple[ManagedSandbox, ...]:
    """All sandboxes of ours, paused ones included."""
    return tuple(
        ManagedSandbox(
            id=listed.sandbox_id,
            backend=backend,
            created_at=listed.started_at,
            expires_at=listed.end_at,
            metadata=callers_metadata(labels_of(listed)),
            state=listed.state.value,
        )
        for listed in await list_labelled({LABEL_MANAGED: "true"}, options)
    )


async def kill_managed(sandbox_id: str, options: Mapping[str, Any]) -> None:
    """End a sandbox of ours. One that is gone is success.

    Raises:
        ConnectError: sandboxio did not make it.
    """
    try:
        await _info(sandbox_id, options)
    except SandboxGone:
        return
    await AsyncSandbox.kill(sandbox_id, **options)


async def kill_created(creation_id: str, options: Mapping[str, Any], *, answered: bool) -> None:
    """End whatever carries a creation id, also what the provider is still busy making.

    Raises:
        ConnectError: The request was not answered and nothing has come of it yet, though it may.

    Args:
        creation_id: The value of the label.
        options: How to call the SDK.
        answered: Whether the create request was answered, or never sent, so that nothing comes late.
    """
    for attempt in range(1 if answered else _SETTLE_TRIES):
        if attempt:
            await anyio.sleep(_SETTLE_PAUSE)
        found = await list_labelled({LABEL_CREATION: creation_id}, options)
        for listed in found:
            await AsyncSandbox.kill(listed.sandbox_id, **options)
        if found:
            return
    if not answered:
        raise ConnectError("E2B has not answered the request for a sandbox, which may still appear")


def callers_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """The caller's labels among those that E2B keeps."""
    return {name: value for name, value in metadata.items() if not name.startswith(_OUR_PREFIX)}


async def _info(sandbox_id: str, options: Mapping[str, Any]) -> SandboxInfo:
    if not sandbox_id or not sandbox_id.isascii() or not sandbox_id.replace("-", "").isalnum():
        raise SandboxGone(f"{sandbox_id[:80]!r} is not the id of an E2B sandbox")
    info = await AsyncSandbox.get_info(sandbox_id, **options)
    if info.metadata.get(LABEL_MANAGED) != "true":
        raise ConnectError(
            f"the E2B sandbox {sandbox_id[:40]} was not made by sandboxio, so it is left alone",
            hint="`sandboxio reap` lists the ones that were",
        )
    return info
