"""Ending one execution in a container: its whole tree and nothing else, by the engine's own word."""

from __future__ import annotations

from typing import Final

import anyio

from sandboxio.adapter.tree_kill import end_tree
from sandboxio.errors import ConnectError
from sandboxio_docker.container import Container, gone
from sandboxio_docker.errors import EngineError

__all__ = ["kill_tree"]

_CROWD: Final = 64
_LEADER_CHECKS: Final = 40
_LEADER_PAUSE: Final = 0.025


async def kill_tree(
    container: Container, exec_id: str, marker: str, leader: str, *, numbered: bool, key: str
) -> None:
    """End every process of an execution; see `sandboxio.adapter.tree_kill`.

    Args:
        container: Where it runs.
        exec_id: The engine's name for the execution.
        marker: The execution's number.
        leader: The leader's process id in the container, or empty when unknown.
        numbered: Whether the number is a limit; otherwise it is a variable.
        key: What the sandbox's numbers are sealed with.

    Raises:
        ConnectError: It cannot be said that all of them have ended.
    """

    async def run(script: str, arguments: tuple[str, ...]) -> tuple[bytes, int | None]:
        answer = await container.run_script(script, *arguments)
        return answer.output, answer.code

    try:
        if not (await container.inspect_exec(exec_id)).running:
            leader = ""
        await end_tree(run, marker, leader, numbered=numbered, key=key, crowd=_CROWD)
        await _require_ended(container, exec_id)
    except EngineError as exc:
        if not gone(exc):
            raise


async def _require_ended(container: Container, exec_id: str) -> None:
    for _ in range(_LEADER_CHECKS):
        if not (await container.inspect_exec(exec_id)).running:
            return
        await anyio.sleep(_LEADER_PAUSE)
    raise ConnectError("the engine says that an execution still runs after it was killed")
