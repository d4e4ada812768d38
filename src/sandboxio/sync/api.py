"""`create_sync` and `connect_sync`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sandboxio.api import DEFAULT_TIMEOUT, connect, create
from sandboxio.models import IsolationTier, Resources
from sandboxio.network import NetworkPolicy
from sandboxio.registry import BackendConfig
from sandboxio.sync.loop import LoopThread
from sandboxio.sync.sandbox import SyncSandbox

if TYPE_CHECKING:
    from sandboxio.protocols import AsyncSandbox, Backend

__all__ = ["connect_sync", "create_sync"]


def create_sync(
    target: str | BackendConfig | Backend | None = None,
    *,
    template: str | None = None,
    resources: Resources | None = None,
    network: NetworkPolicy | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    metadata: Mapping[str, str] | None = None,
    require_isolation: IsolationTier | None = None,
) -> SyncSandbox:
    """Create a sandbox and wait for it. Arguments and errors are those of `create`.

    It also works where a loop runs, which it then blocks; `create` is the better choice there.

    Example:
        with sandboxio.create_sync() as sb:
            print(sb.run(["uname"]).stdout)
    """
    return _open(
        partial(
            create,
            target,
            template=template,
            resources=resources,
            network=network,
            env=env,
            secrets=secrets,
            timeout=timeout,
            metadata=metadata,
            require_isolation=require_isolation,
        ),
        owned=True,
    )


def connect_sync(
    target: str | BackendConfig | Backend | None,
    sandbox_id: str,
    *,
    require_isolation: IsolationTier | None = None,
) -> SyncSandbox:
    """A handle to a sandbox that exists. Arguments and errors are those of `connect`.

    Example: `with sandboxio.connect_sync("docker://", sandbox_id) as sb: ...`
    """
    return _open(partial(connect, target, sandbox_id, require_isolation=require_isolation), owned=False)


def _open(pending: Callable[[], Awaitable[AsyncSandbox]], *, owned: bool) -> SyncSandbox:
    loop = LoopThread()
    opened: list[AsyncSandbox] = []

    async def opening() -> None:
        opened.append(await pending())

    try:
        loop.call(opening)
        return SyncSandbox(opened[0], loop, owned=owned)
    except BaseException:
        try:
            if opened:  # interrupted when it was there already, so nobody will ever leave its context
                loop.call(partial(opened[0].__aexit__, None, None, None))
        finally:
            loop.stop()
        raise
