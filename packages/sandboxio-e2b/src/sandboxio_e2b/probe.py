"""What is asked of a sandbox once, before anybody uses it: its folder, its user, what its shell can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import anyio
from e2b.exceptions import TimeoutException
from e2b_code_interpreter import AsyncSandbox

from sandboxio.errors import ConnectError, CreationError
from sandboxio_e2b.process import NO_PROFILE, NO_TIMEOUT

__all__ = ["SandboxFacts", "probe"]

_CLOSED_PORT: Final = "port is not open"
_FIRST_LINE: Final = "sandboxio-facts"
_SCRIPT: Final = rf"""printf '\n%s\n' {_FIRST_LINE}
pwd
ulimit -x 7199999999999999999 2>/dev/null && echo numbered || echo unnumbered
echo "$UID" "${{GROUPS[0]}}"
home=$PWD
while IFS=: read -r _ _ id _ _ folder _; do [ "$id" = "$UID" ] && home=$folder && break; done </etc/passwd
echo "$home"
"""


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """What a sandbox said about itself.

    Attributes:
        home: The absolute path of the folder in which its commands start.
        user_home: The home of their user, for `HOME`.
        numbered: Whether its shell can set the limit that carries an execution's number.
        owner: The uid and gid of its commands.
        interprets_code: Whether a code interpreter answers in it.
    """

    home: str
    user_home: str
    numbered: bool
    owner: tuple[int, int]
    interprets_code: bool


async def probe(native: AsyncSandbox, *, seconds: float) -> SandboxFacts:
    """Ask for all of it at once.

    Args:
        native: The sandbox.
        seconds: How long one answer may take.

    Raises:
        CreationError: The template's shell does not answer as bash does.
        ConnectError: It does not answer in time.
    """
    interprets = False

    async def ask_interpreter() -> None:
        nonlocal interprets
        try:
            await native.list_code_contexts()
            interprets = True
        except TimeoutException as exc:  # what the SDK makes of a port that nothing listens on
            if _CLOSED_PORT not in str(exc):
                raise

    said = ""

    async def ask_shell() -> None:
        nonlocal said
        answer = await native.commands.run(
            _SCRIPT, envs=NO_PROFILE, timeout=NO_TIMEOUT, request_timeout=NO_TIMEOUT
        )
        said = answer.stdout

    try:
        with anyio.move_on_after(seconds) as bound:
            async with anyio.create_task_group() as group:
                group.start_soon(ask_interpreter)
                group.start_soon(ask_shell)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if bound.cancelled_caught:
        raise ConnectError(f"the sandbox did not answer within {seconds:g} s")
    _, _, text = said.rpartition(f"\n{_FIRST_LINE}\n")
    lines = text.splitlines()
    ids = lines[2].split() if len(lines) == 4 else []
    if len(ids) != 2 or not all(word.isdecimal() for word in ids) or not lines[0].startswith("/"):
        raise CreationError(
            "the template's shell does not answer as bash does",
            hint="use a template with bash as /bin/bash, whose /etc/profile prints nothing of this kind",
        )
    owner = int(ids[0]), int(ids[1])
    return SandboxFacts(lines[0], lines[3], lines[1] == "numbered", owner, interprets)
