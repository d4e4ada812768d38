"""Ending one execution on a POSIX system by a script: its whole tree and nothing else.

For adapters whose provider can run a shell in the sandbox but cannot end a tree itself. Every
execution starts under a number of its own in `RLIMIT_LOCKS`, a limit that Linux keeps and inherits
but has not enforced since version 2.4. A process can lower it but, unless it is root, never raise it
or take it off, so whatever session, group, parent or environment a descendant gives itself, it
carries the number, or one that belongs to nobody. The numbers are sealed with a key that the sandbox
does not know, so a made-up one gives itself away. The script is made of shell builtins alone, since
in a sandbox whose process limit is exhausted nothing can be forked.

Where that limit cannot be set, as under gVisor, the number is a variable of the environment instead,
beside sessions and parents; a descendant that leaves all three is not found.

A process can only take on the number of an execution that began *later*, since numbers fall. If it
also leaves its session and its parent, it passes for part of that one and ends with it. Two executions
that two processes of the host start in one sandbox in the same hundredth of a second share a number,
and so their end.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

import anyio

from sandboxio.errors import ConnectError

__all__ = ["MARKER_VARIABLE", "Numbers", "RunScript", "end_tree"]

MARKER_VARIABLE: Final = "SANDBOXIO_EXECUTION"
"""The variable that carries a number where the limit cannot."""

RunScript = Callable[[str, tuple[str, ...]], Awaitable[tuple[bytes, int | None]]]
"""Runs a script in the sandbox's shell with arguments, and returns its standard output and exit code."""

_PREFIX: Final = "7"
_NONCE_DIGITS: Final = 11
_SEAL_DIGITS: Final = 7
_EPOCH: Final = 1_767_225_600  # 2026-01-01
_FAMILY: Final = _PREFIX + "?" * (_NONCE_DIGITS + _SEAL_DIGITS)
_FORGED_LIMIT: Final = 20
_SCRIPT_SECONDS: Final = 4.4

KILL_SCRIPT: Final = r"""
marker=$1 leader=$2 family=$3 crowd=$4 self=$$ freeze= seen= led= strangers= round=0
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
        case ${1:-X} in
        X | x) continue ;;
        Z) parent=$2 session=$4; set -- "$entry"/task/*; [ $# -gt 1 ] || continue ;; # threads live on
        *) parent=$2 session=$4 ;;
        esac
        if [ "$family" = environ ]; then
            while IFS= read -r line || [ "$line" ]; do
                case $line in *"SANDBOXIO_EXECUTION=$marker"*) limit=$marker; break ;; esac
                line=
            done 2>/dev/null <"$entry/environ"
        else
            while read -r max file locks soft hard rest; do
                [ "$max $file $locks" = "Max file locks" ] && limit=$hard && break
            done 2>/dev/null <"$entry/limits"
        fi
        case $limit in
        "$marker") hit "$pid" ;;
        $family)
            others="$others $pid:$parent:$session"
            case " $strangers " in *" $limit "*) ;; *) strangers="$strangers $limit" ;; esac
            ;;
        unlimited) others="$others $pid:$parent:$session" ;;
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
[ "$hits" ] && exit 1
echo clean $strangers
"""


class _Counter:
    """What was counted down to."""

    __slots__ = ("__weakref__", "last")

    def __init__(self) -> None:
        self.last = 10**_NONCE_DIGITS


# Two handles of one sandbox would otherwise give the same number to what they start in the same moment,
# and the end of the one would be the end of the other.
_counters: Final[WeakValueDictionary[str, _Counter]] = WeakValueDictionary()
_counting: Final = threading.Lock()


class Numbers:
    """Hands out the numbers of one sandbox's executions, each lower than the one before.

    A limit can only be lowered, so an execution cannot take the number of one that began before it,
    which may have ended already and would then never be looked for.

    Args:
        key: What the numbers are sealed with; it never enters the sandbox.

    Example: `marker = Numbers(creation_id).next()`
    """

    def __init__(self, key: str) -> None:
        self._key = key
        with _counting:
            self._counter = _counters.setdefault(key, _Counter())

    def next(self) -> str:
        """A number that no other execution has.

        It counts down in hundredths of a second, so that several handles of a sandbox agree, and does
        so until the year 2057.
        """
        hundredths = int((time.time() - _EPOCH) * 100)
        with _counting:
            last = min(10**_NONCE_DIGITS - 1 - hundredths, self._counter.last - 1)
            self._counter.last = last
        nonce = str(last).zfill(_NONCE_DIGITS)
        return _PREFIX + nonce + _seal(nonce, self._key)


async def end_tree(run: RunScript, marker: str, leader: str, *, numbered: bool, key: str, crowd: int) -> None:
    """End every process of an execution.

    In a sandbox with many processes everything is held still meanwhile: a tree that forks in many
    sessions would otherwise leave the one shell that looks for it no time to run.

    Args:
        run: Runs the script; what it raises comes through.
        marker: The execution's number.
        leader: The leader's process id in the sandbox, or empty when it has ended or is unknown: an
            id that was given back may belong to somebody else by now.
        numbered: Whether the number is a limit; otherwise it is a variable.
        key: What the sandbox's numbers are sealed with.
        crowd: From how many processes on everything is held still.

    Raises:
        ConnectError: It cannot be said that all of them have ended.
        ValueError: There is no number, which would be that of processes nobody knows.

    Example: `await end_tree(run, marker, "42", numbered=True, key=creation_id, crowd=64)`
    """
    if not marker:
        raise ValueError("an execution has a number")
    family = _FAMILY if numbered else "environ"
    pending, ended = [marker], set[str]()
    with anyio.move_on_after(_SCRIPT_SECONDS):
        while pending and len(ended) < _FORGED_LIMIT:
            number = pending.pop()
            ended.add(number)
            output, code = await run(KILL_SCRIPT, (number, leader, family, str(crowd)))
            word, *strangers = output.decode("ascii", "replace").split() or [""]
            if word != "clean" or code != 0:
                raise ConnectError("the processes of an execution could not be ended")
            leader = ""
            forged = {found for found in strangers if not _is_genuine(found, key)}
            pending += sorted(forged - ended - set(pending))
        return
    raise ConnectError("the processes of an execution could not be ended in time")


def _seal(nonce: str, key: str) -> str:
    digest = hmac.digest(key.encode(), nonce.encode(), "sha256")
    return str(int.from_bytes(digest[:8], "big") % 10**_SEAL_DIGITS).zfill(_SEAL_DIGITS)


def _is_genuine(marker: str, key: str) -> bool:
    nonce = marker[len(_PREFIX) : len(_PREFIX) + _NONCE_DIGITS]
    return hmac.compare_digest(marker, _PREFIX + nonce + _seal(nonce, key))
