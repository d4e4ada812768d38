"""Ending one execution: its whole tree and nothing else.

Every execution starts under a number of its own in `RLIMIT_LOCKS`, a limit that Linux keeps and
inherits but has not enforced since version 2.4. A process can lower it but never raise it or take
it off, so whatever session, group, parent or environment a descendant gives itself, it carries the
number, or one that belongs to nobody; either gives it away. The script below is made of shell
builtins alone, since in a sandbox whose process limit is exhausted nothing can be forked.

A process that takes on the number of *another* execution, and in addition leaves its session and
its parent, passes for part of that one and ends with it.
"""

from __future__ import annotations

import secrets
from typing import Final

import anyio

from sandboxio.errors import ConnectError
from sandboxio_docker.container import Container, gone
from sandboxio_docker.errors import EngineError

__all__ = ["kill_tree", "new_marker"]

_PREFIX: Final = "71"
_RANDOM_DIGITS: Final = 17
_FAMILY: Final = _PREFIX + "?" * _RANDOM_DIGITS

_CROWD: Final = 64
_SCRIPT_SECONDS: Final = 4.4
_LEADER_CHECKS: Final = 40
_LEADER_PAUSE: Final = 0.025

KILL_SCRIPT: Final = r"""
marker=$1 leader=$2 family=$3 crowd=$4 self=$$ freeze= seen= led= round=0
[ "$leader" ] && kill -s STOP -- "-$leader" 2>/dev/null
set -- /proc/[0-9]*
[ $# -gt "$crowd" ] && freeze=1 && kill -s STOP -- -1 2>/dev/null
hit() {
    hits="$hits $1"
    [ "$1" = "$leader" ] && led=1
    [ "$freeze" ] || kill -s STOP "$1" 2>/dev/null
}
while [ $round -lt 500 ]; do
    round=$((round + 1)) hits= others=
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/} stat= limit=
        [ "$pid" = 1 ] || [ "$pid" = "$self" ] && continue
        while IFS= read -r line; do stat=$line; done 2>/dev/null <"$entry/stat"
        set -- ${stat##*) }
        case ${1:-Z} in Z | X | x) continue ;; esac
        parent=$2 session=$4
        while read -r max file locks soft hard rest; do
            [ "$max $file $locks" = "Max file locks" ] && limit=$hard && break
        done 2>/dev/null <"$entry/limits"
        case $limit in
        "$marker") hit "$pid" ;;
        unlimited | $family) others="$others $pid:$parent:$session" ;;
        ?*) hit "$pid" ;;
        *) if [ "$session" = "$leader" ]; then hit "$pid"; else others="$others $pid:$parent:$session"; fi ;;
        esac
    done
    grown=1
    while [ "$grown" ]; do
        grown= rest=
        for record in $others; do
            pid=${record%%:*} tail=${record#*:}
            parent=${tail%%:*} session=${tail#*:}
            case " $hits " in
            *" $parent "*) hit "$pid"; grown=1 ;;
            *) if [ "$led" ] && [ "$session" = "$leader" ]; then hit "$pid"; grown=1
               else rest="$rest $record"; fi ;;
            esac
        done
        others=$rest
    done
    [ "$hits" ] || break
    if [ "$freeze" ] || [ "$hits" = "$seen" ]; then kill -s KILL $hits 2>/dev/null; fi
    seen=$hits
done
[ "$freeze" ] && kill -s CONT -- -1 2>/dev/null
[ "$hits" ] || echo clean
"""


def new_marker() -> str:
    """A number that no other execution has."""
    return _PREFIX + str(secrets.randbelow(10**_RANDOM_DIGITS)).zfill(_RANDOM_DIGITS)


async def kill_tree(container: Container, exec_id: str, marker: str, leader: str) -> None:
    """End every process of an execution.

    In a sandbox with many processes everything is held still meanwhile: a tree that forks in many
    sessions would otherwise leave the one shell that looks for it no time to run.

    Args:
        container: Where it runs.
        exec_id: The engine's name for the execution.
        marker: The execution's number.
        leader: The leader's process id in the container, or empty when unknown.

    Raises:
        ConnectError: It cannot be said that all of them have ended.
    """
    try:
        if not (await container.inspect_exec(exec_id)).running:
            leader = ""  # a process id that was given back may belong to somebody else by now
        output = b""
        with anyio.move_on_after(_SCRIPT_SECONDS):
            output = await container.run_script(KILL_SCRIPT, marker, leader, _FAMILY, str(_CROWD))
        if output.strip() != b"clean":
            reason = output.decode("utf-8", "replace").strip()[:200] or "no answer in time"
            raise ConnectError(f"the processes of an execution could not be ended: {reason}")
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
