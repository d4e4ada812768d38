"""Processes as envd runs them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from .children import Children, Group, base_environment, describe_end, prefer_for_oom
from .files import resolve
from .mux import AgentError, Stream
from .pipes import PipeClosed, PipeWriter, any_readable, read_now

__all__ = ["Processes"]


class _Process:
    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.stdin = None if child.stdin is None else PipeWriter(child.stdin)


class Processes:
    """The processes that the host has started and that have not ended."""

    def __init__(self, children: Children, home: str, envs: Mapping[str, str]) -> None:
        self._children = children
        self._home = home
        self._envs = envs
        self._group = Group()
        self._live: dict[int, _Process] = {}

    async def start(
        self,
        stream: Stream,
        cmd: str,
        args: list[str],
        envs: Mapping[str, str],
        cwd: str | None,
        stdin: bool,
    ) -> dict[str, Any]:
        """Start one, tell its pid, send what it writes, and end with how it ended.

        As with Go's `Cmd` over pipes, the leader is collected only after its pipes are closed.
        """
        process = self._spawn([cmd, *args], envs, cwd, stdin)
        child = process.child
        self._live[child.pid] = process
        try:
            stream.reply(child.pid)
            await asyncio.gather(_pump(stream, child.stdout, "stdout"), _pump(stream, child.stderr, "stderr"))
            return describe_end(await self._children.ended(child))
        finally:
            del self._live[child.pid]
            if process.stdin is not None:
                process.stdin.close()

    async def input(self, stream: Stream, pid: int) -> None:
        """Write the stream's bytes to a process."""
        stdin = self._get(pid).stdin
        if stdin is None:
            raise AgentError("internal", "error writing to stdin: stdin not enabled or closed")
        while True:
            piece = await stream.receive()
            if piece is None:
                return
            try:
                await stdin.write(piece)
            except PipeClosed as exc:
                raise AgentError("internal", f"error writing to stdin: {exc}") from exc

    async def close_input(self, stream: Stream, pid: int) -> None:
        """Let a process read end of file."""
        stdin = self._get(pid).stdin
        if stdin is None:
            raise AgentError("internal", "error closing stdin: stdin not enabled or closed")
        stdin.close()

    async def signal(self, stream: Stream, pid: int, number: int) -> None:
        """Signal the leader alone. It may be a zombie, which notices nothing."""
        child = self._get(pid).child
        os.kill(child.pid, number)

    def _get(self, pid: int) -> _Process:
        try:
            return self._live[pid]
        except KeyError:
            raise AgentError("not_found", f"process with pid {pid} not found") from None

    def _spawn(self, argv: list[str], envs: Mapping[str, str], cwd: str | None, stdin: bool) -> _Process:
        folder = resolve(cwd or self._home, self._home)
        if not os.path.exists(folder):
            raise AgentError("invalid_argument", f"cwd '{folder}' does not exist")
        try:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                env={**base_environment(self._home), **self._envs, **envs},
                preexec_fn=self._group.joiner(),
            )
        except BlockingIOError as exc:
            raise AgentError("resource_exhausted", f"error starting process: {exc.strerror}") from exc
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            raise AgentError("invalid_argument", f"error starting process '{argv[0]}': {exc}") from exc
        prefer_for_oom(child.pid)
        return _Process(child)


async def _pump(stream: Stream, pipe: Any, tag: str) -> None:
    fd = pipe.fileno()
    os.set_blocking(fd, False)
    with pipe:
        while True:
            data = read_now(fd)
            if data is None:
                await any_readable([fd])
            elif data:
                await stream.send(data, tag)
            else:
                return
