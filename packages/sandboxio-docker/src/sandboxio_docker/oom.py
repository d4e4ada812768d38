"""Kills for want of memory: who was running when one happened.

The engine's `oom` events of one container arrive on a connection that nobody waits on; what has
come in is looked at when an execution ends. An execution that ended by SIGKILL must know for
certain, so the kernel's own count is then read inside the container.
"""

from __future__ import annotations

import json
import threading
import weakref
from typing import Final

import h11

from sandboxio_docker.container import Container
from sandboxio_docker.exchange import Exchange

__all__ = ["OomSince", "OomWatch"]

COUNT_SCRIPT: Final = r"""
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    while read -r name value; do
        [ "$name" = oom_kill ] && echo "$value" && exit
    done 2>/dev/null <"$file"
done
"""


class OomWatch:
    """The number of kills in one container, as far as it is known here.

    Args:
        container: The container.
        has_shell: Whether the kernel's count can be read inside it.
    """

    def __init__(self, container: Container, *, has_shell: bool) -> None:
        self._container = container
        self._has_shell = has_shell
        self._events: Exchange | None = None
        self._lock = threading.Lock()  # executions of several event loops may end at once
        self._count = 0

    @property
    def count(self) -> int:
        """Kills that are known of; looks at what has come in."""
        with self._lock:
            self._drain()
            return self._count

    async def subscribe(self) -> None:
        """Have the engine send events from now on."""
        filters = json.dumps({"container": [self._container.id], "event": ["oom"]})
        self._events = await self._container.engine.subscribe("/events", filters=filters)
        weakref.finalize(self, self._events.close)  # a connected handle may just be dropped

    async def read_kernel_count(self) -> int:
        """Correct the number by the kernel's and return it."""
        if self._has_shell:
            text = (await self._container.run_script(COUNT_SCRIPT)).output.strip()
            if text.isdigit():
                with self._lock:
                    self._drain()
                    self._count = max(self._count, int(text))
        return self.count

    def close(self) -> None:
        """Give the connection back. Idempotent."""
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def _drain(self) -> None:
        while (events := self._events) is not None:
            try:
                data = events.stream.receive_nowait()
                if data is None:
                    return
                self._count += events.feed_lines(data)
            except (OSError, h11.ProtocolError):
                data = b""
            if not data:  # the engine hung up; what ends by SIGKILL still asks the kernel
                self.close()


class OomSince:
    """Kills since an execution started.

    Args:
        watch: The container's.
        before: Its count at the start.
    """

    def __init__(self, watch: OomWatch, before: int) -> None:
        self._watch = watch
        self._before = before

    def seen(self) -> bool:
        """Whether an event of one has come in."""
        return self._watch.count > self._before

    async def certain(self) -> bool:
        """Whether there was one, by the kernel's own count."""
        return await self._watch.read_kernel_count() > self._before
