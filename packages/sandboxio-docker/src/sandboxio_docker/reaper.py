"""The parent's side of the reaper: one helper process for each process that creates sandboxes.

The helper is in a session of its own, so neither Ctrl-C nor a signal to the group reaches it, and
it holds nothing but a pipe. When that ends, because its parent was killed, it removes what carries
the parent's label. It is armed before a create request is sent. `SBX_DOCKER_REAPER=0` switches it
off; the lifetime inside the engine remains.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import select
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from sandboxio.errors import ConnectError, CreationError
from sandboxio_docker.address import Address

__all__ = ["Reaper", "reaper", "reaper_enabled"]

VARIABLE: Final = "SBX_DOCKER_REAPER"
_SCRIPT: Final = Path(__file__).with_name("reaper_process.py")
_FAREWELL_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 2.0


def reaper_enabled() -> bool:
    """Whether the reaper is wanted, and can be: a frozen program has no interpreter to run it with."""
    return os.environ.get(VARIABLE, "1") != "0" and not getattr(sys, "frozen", False) and bool(sys.executable)


class Reaper:
    """The helper process, started when it is first needed and again if it died. Blocking.

    Example: `reaper().hold(creation_id, address)`
    """

    def __init__(self) -> None:
        self.process_id = uuid4().hex
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._held: dict[str, dict[str, Any]] = {}
        self._kept: list[str] = []

    def hold(self, creation_id: str, address: Address) -> None:
        """Answer for what is about to be created. Once this returns, the helper knows.

        Raises:
            CreationError: The helper cannot be started.
        """
        with self._lock:
            self._held[creation_id] = asdict(address)
            try:
                self._tell({"hold": creation_id, "engine": self._held[creation_id]})
            except OSError as exc:
                self._held.pop(creation_id)
                raise CreationError(
                    f"the reaper process cannot be started: {exc.strerror or exc}",
                    hint=f"{VARIABLE}=0 does without it; what a killed process leaves then lives on",
                ) from exc

    def drop(self, creation_id: str) -> None:
        """Answer for it no longer, since it is gone."""
        with self._lock:
            if self._held.pop(creation_id, None) is not None:
                with contextlib.suppress(OSError):  # a helper that cannot be told has nothing to do either
                    self._tell({"drop": creation_id})

    def keep(self, creation_id: str) -> None:
        """Answer for it no longer, since it is to live on. Once this returns, the helper knows.

        Raises:
            ConnectError: The helper cannot be told.
        """
        with self._lock:
            if self._held.pop(creation_id, None) is None:
                return
            self._kept.append(creation_id)
            try:
                self._tell({"keep": creation_id})
            except OSError as exc:
                raise ConnectError(f"the reaper process cannot be told: {exc.strerror or exc}") from exc

    def close(self) -> None:
        """Let the helper end: at once when nothing is held, else after it has cleared up."""
        with self._lock:
            child, self._child = self._child, None
            if child is None:
                return
            _close_pipes(child)
            if not self._held:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_FAREWELL_SECONDS)

    def forget(self) -> None:
        """In a forked child: the helper is the parent's, and so is what it holds."""
        child = self._child
        if child is not None:
            child.returncode = 0  # it is no child of this process, so there is nothing to wait for
            _close_pipes(child)

    def _tell(self, order: dict[str, Any]) -> None:
        child, self._child = self._child, None
        if child is not None:
            try:
                _exchange(child, order)
            except OSError:
                _close_pipes(child)
                child.kill()
                child.wait()
            else:
                self._child = child
                return
        self._child = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a helper that knows everything the last one knew."""
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            start_new_session=True,
            bufsize=0,  # nothing may be left in a buffer that a fork would copy
        )
        label = f"sandboxio.process={self.process_id}"
        try:
            _exchange(
                child, {"path": [str(Path(entry or ".").resolve()) for entry in sys.path], "label": label}
            )
            for creation_id in self._kept:
                _exchange(child, {"keep": creation_id})
            for creation_id, engine in self._held.items():
                _exchange(child, {"hold": creation_id, "engine": engine})
        except OSError:
            _close_pipes(child)
            child.kill()
            child.wait()
            raise
        return child


def _exchange(child: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(order).encode() + b"\n")
    if not _answers(child.stdout.fileno()):
        raise TimeoutError(errno.ETIMEDOUT, "the reaper process does not answer")
    if child.stdout.readline() != b"ok\n":
        raise BrokenPipeError("the reaper process has ended")


def _answers(descriptor: int) -> bool:
    """Whether something comes in time. Windows cannot wait for a pipe, so there the read waits."""
    if not hasattr(select, "poll"):
        return True
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(waiting.poll(int(_ANSWER_SECONDS * 1000)))


def _close_pipes(child: subprocess.Popen[bytes]) -> None:
    pipes: tuple[IO[bytes] | None, ...] = (child.stdin, child.stdout)
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


_reaper = Reaper()


def reaper() -> Reaper:
    """The reaper of this process."""
    return _reaper


def _after_fork() -> None:
    global _reaper
    old, _reaper = _reaper, Reaper()
    old.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: reaper().close())
