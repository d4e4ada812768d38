"""The shell behind file operations, for POSIX shells with coreutils or busybox.

A script gets its paths as `$1`, `$2`, … and never as part of its text. It ends with one of the
codes below, or with a tool's own code after that tool has written the reason to stderr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "DONE",
    "EXISTS_AS_DIRECTORY",
    "LIST",
    "MISSING",
    "MKDIR",
    "MKDIR_PARENTS",
    "NOT_A_DIRECTORY",
    "NOT_A_FILE",
    "NO_TAR",
    "OF_TARGET",
    "PLACE",
    "READ",
    "READ_TREE",
    "REMOVE",
    "REMOVE_TREE",
    "RENAME",
    "SHORT",
    "STAT",
    "WRITE",
    "WRITE_TREE",
    "decoding",
]

DONE: Final = 0
MISSING: Final = 80
EXISTS_AS_DIRECTORY: Final = 81
NOT_A_DIRECTORY: Final = 82
NOT_A_FILE: Final = 83
SHORT: Final = 84
NO_TAR: Final = 85

OF_TARGET: Final[Mapping[int, int]] = {86: EXISTS_AS_DIRECTORY, 87: NOT_A_DIRECTORY, 88: 1}
"""The codes that are about the second path of `RENAME`, and what each says of it."""

# `stat` of coreutils and of busybox agree on these letters; without either, tests that are part of
# every shell still tell directories from files.
_DESCRIBE: Final = r"""
describe() {
    if command -v stat >/dev/null; then
        stat -c '%f %s %Y %n' -- "$@"
    else
        for one; do
            [ -e "$one" ] || [ -L "$one" ] || continue
            if [ -d "$one" ] && ! [ -L "$one" ]; then kind=4000; else kind=8000; fi
            printf '%s - - %s\n' $kind "$one"
        done
    fi
}
"""

READ: Final = r"""
if ! [ -f "$1" ]; then
    [ -d "$1" ] && exit 81
    [ -e "$1" ] && exit 83
    [ -L "$1" ] && exit 80
    exec cat -- "$1"
fi
[ -r "$1" ] || exec cat -- "$1"
stat -Lc '%s' -- "$1" 2>/dev/null || echo '?'
exec cat -- "$1"
"""
"""The size in bytes as a line, then the content."""

WRITE: Final = r"""
fail() { code=$?; rm -f -- "$part"; exit "${1:-$code}"; }
part=$2
[ -d "$1" ] && exit 81
umask "$3"
set -C
cat >"$part" || fail
size=$(stat -c '%s' -- "$part" 2>/dev/null || wc -c <"$part")
[ "$size" -eq "$4" ] || fail 84
[ -z "$5" ] || chmod "$5" -- "$part" || fail
mv -f -- "$part" "$1" || fail
"""
"""$1 the path, $2 a new name beside it, $3 the umask, $4 the size, $5 a mode the umask cannot give."""

PLACE: Final = r"""
fail() { rm -f -- "$part"; exit "$1"; }
part=$2
[ -d "$1" ] && fail 81
mv -f -- "$part" "$1" || fail $?
"""
"""$1 the path, $2 a file on the same file system that is to be there."""

READ_TREE: Final = r"""
[ -e "$1" ] || [ -L "$1" ] || exit 80
[ -d "$1" ] || exit 82
command -v tar >/dev/null || exit 85
cd -- "$1" || exit 1
echo ready
exec tar -cf - .
"""
"""A line, then the archive."""

WRITE_TREE: Final = r"""
[ -d "$1" ] || exit 82
command -v tar >/dev/null || exit 85
cd -- "$1" || exit 1
exec tar -xpof -
"""

# Hostile code chooses how many entries there are. A shell is quick to take arguments off its list, but copies
# them all to add one, and not every image has an `xargs -0`.
_BATCH: Final = 500
_FIRST: Final = " ".join(f'${{{n}+"./${{{n}}}"}}' for n in range(1, _BATCH + 1))
"""The first so many arguments, or as many as there are, as paths from the working folder."""

LIST: Final = (
    _DESCRIBE
    + r"""
[ -e "$1" ] || [ -L "$1" ] || exit 80
[ -d "$1" ] || exit 82
cd -- "$1" || exit 1
[ -r . ] || { echo 'Permission denied' >&2; exit 1; }
flush() {
    printf '%s\0' "$@"
    printf '\0'
    describe "$@" 2>/dev/null
    printf '\0'
}
"""
    + f"""
set -- .[!.]* ..?* *
while [ $# -gt {_BATCH} ]; do
    flush {_FIRST}
    shift {_BATCH}
done
flush {_FIRST}
"""
)
"""Batches of: names, each ended by NUL; an empty name; a description of each that is there; NUL.

A pattern that matches nothing is among the names and is not described.
"""

STAT: Final = (
    _DESCRIBE
    + r"""
[ -e "$1" ] || [ -L "$1" ] || {
    case $1 in */*) parent=${1%/*} ;; *) parent=. ;; esac
    [ -d "${parent:-/}" ] && ! [ -x "${parent:-/}" ] && { echo 'Permission denied' >&2; exit 1; }
    exit 80
}
describe "$1"
"""
)

MKDIR: Final = 'exec mkdir -- "$1"'
MKDIR_PARENTS: Final = 'exec mkdir -p -- "$1"'

REMOVE: Final = r"""
[ -e "$1" ] || [ -L "$1" ] || exit 80
if [ -d "$1" ] && ! [ -L "$1" ]; then exit 81; fi
exec rm -f -- "$1"
"""

REMOVE_TREE: Final = r"""
[ -e "$1" ] || [ -L "$1" ] || exit 80
rm -rf -- "$1" 2>/dev/null && exit 0
chmod -R u+rwX -- "$1" 2>/dev/null
exec rm -rf -- "$1"
"""
"""Folders that their owner made unreadable go too."""

RENAME: Final = r"""
[ -e "$1" ] || [ -L "$1" ] || exit 80
[ "$1" = "$2" ] && exit
[ -d "$2" ] && exit 86
if [ -d "$1" ] && ! [ -L "$1" ]; then
    [ -e "$2" ] || [ -L "$2" ] && exit 87
fi
mv -f -- "$1" "$2" && exit
code=$?
[ $code = 1 ] || exit $code
[ "$1" -ef "$2" ] && ! [ -L "$1" ] && exit
[ -d "${2%/*}/" ] || exit 88
[ -w "${1%/*}/" ] || exit 1
[ -L "$1" ] || [ -r "$1" ] || exit 1
[ -d "$1" ] && ! [ -w "$1" ] && exit 1
exit 88
"""
"""A file that is at its target already is moved, by any of its names, as `rename(2)` has it.

What `mv` refuses is about the target unless the source is what its user may not move."""


def decoding(script: str, count: int) -> str:
    """The script, for `count` paths that come as backslash escapes since they are not UTF-8."""
    lines = [f'path{n}=$(printf "%b." "${n}"); path{n}=${{path{n}%.}}' for n in range(1, count + 1)]
    names = " ".join(f'"$path{n}"' for n in range(1, count + 1))
    return "\n".join([*lines, f"shift {count}", f'set -- {names} "$@"', script])
