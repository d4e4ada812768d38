"""The agent's own children: how one is noticed to have ended, and what Go would say about it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import Any

__all__ = ["Children", "describe_end"]

_OOM_SCORE = 100

_SIGNALS = {
    1: "hangup",
    2: "interrupt",
    3: "quit",
    4: "illegal instruction",
    5: "trace/breakpoint trap",
    6: "aborted",
    7: "bus error",
    8: "floating point exception",
    9: "killed",
    10: "user defined signal 1",
    11: "segmentation fault",
    12: "user defined signal 2",
    13: "broken pipe",
    14: "alarm clock",
    15: "terminated",
}


class Children:
    """Knows when a child ends. One that nobody waits for stays a zombie."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._changed)

    async def ended(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for a child, collect it and return its code."""
        loop = asyncio.get_running_loop()
        while True:
            code = child.poll()
            if code is not None:
                return code
            changed = loop.create_future()
            self._waiting.append(changed)
            await changed

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def prefer_for_oom(pid: int) -> None:
    """Have the kernel end this process before the agent when memory is short."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write(str(_OOM_SCORE))
    except OSError:  # it has ended
        return


def describe_end(code: int) -> dict[str, Any]:
    """How a child ended, as envd tells it."""
    if code >= 0:
        return {"exit_code": code, "exited": True, "status": f"exit status {code}"}
    name = _SIGNALS.get(-code, f"signal {-code}")
    return {"exit_code": -1, "exited": False, "status": f"signal: {name}"}


def base_environment(home: str) -> dict[str, str]:
    """What every process gets before the machine's and its own variables."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "USER": "user",
        "LOGNAME": "user",
    }


class Group:
    """The process group that all started processes share, as they share envd's.

    None of them leads it, so that one can make a session of its own without a fork, and what one of
    them sends to its group never meets the agent.
    """

    def __init__(self) -> None:
        self._keeper = self._keep()

    def joiner(self) -> Any:
        """What a child calls before its program starts."""
        if self._keeper.poll() is not None:
            self._keeper = self._keep()
        group = self._keeper.pid
        return lambda: os.setpgid(0, group)

    def _keep(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.setpgid(0, 0),
        )
