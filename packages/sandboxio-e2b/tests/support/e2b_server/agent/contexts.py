"""Code contexts: each is a kernel process of its own that is replaced when it dies."""

from __future__ import annotations

import asyncio
import builtins
import codecs
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import IO, Any

from .children import Children, base_environment, prefer_for_oom
from .files import resolve
from .mux import AgentError, Stream, StreamClosed
from .pipes import PipeClosed, PipeWriter, any_readable, read_now

__all__ = ["Contexts"]

_LINE_SECONDS = 0.002

_CATCH_UP = 16
"""How many pieces of output are taken before a message that came after them."""


class _Cell:
    """One execution: where its messages go, and whether its code has ended."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream
        self.over = False

    async def send(self, message: Mapping[str, Any]) -> None:
        if self._stream is None:
            return
        try:
            await self._stream.send(json.dumps(message).encode() + b"\n")
        except StreamClosed:
            self._stream = None


_NOBODY = _Cell(None)


class _Kernel:
    """One kernel process. It leads a session, and with it what it starts."""

    def __init__(self, children: Children, source: str, cwd: str, environment: Mapping[str, str]) -> None:
        requests, own_requests = _pipe()
        own_messages, messages = _pipe()
        with requests, messages:
            fds = (requests.fileno(), messages.fileno())
            self._child = subprocess.Popen(
                [sys.executable, "-u", "-c", source, *map(str, fds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=dict(environment),
                pass_fds=fds,
                start_new_session=True,
            )
        prefer_for_oom(self._child.pid)
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._messages = own_messages
        self._requests = PipeWriter(own_requests)
        self._outputs = {"stdout": self._child.stdout, "stderr": self._child.stderr}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in self._outputs}
        self._line = bytearray()
        self._killed = False
        self._begun = True
        self._cell = _NOBODY
        self._ended: asyncio.Future[bool] | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        self._reader = loop.create_task(self._read())
        self._watch = loop.create_task(self._watch_end(children))

    async def run(self, cell: _Cell, code: str, *, silent: bool = False) -> bool:
        """Run a cell and tell whether the kernel has survived it."""
        self._cell = _NOBODY if silent else cell
        self._begun = silent
        self._ended = asyncio.get_running_loop().create_future()
        try:
            await self._requests.write(json.dumps({"code": code, "silent": silent}).encode() + b"\n")
        except PipeClosed:
            await asyncio.wait([self._reader])
            return False
        if self._killed or self._reader.done():
            return False
        try:
            return await self._ended
        finally:
            self._cell = _NOBODY

    def interrupt(self) -> None:
        """SIGINT to the kernel's process group, as jupyter's kernel manager does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End the kernel's process group and take no more of its output."""
        self._signal(signal.SIGKILL)
        self._killed = True
        self._reader.cancel()
        self._settle(False)

    def _signal(self, number: int) -> None:
        if not self.gone.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)

    async def _watch_end(self, children: Children) -> None:
        await children.ended(self._child)
        self.gone.set_result(None)
        self._requests.close()
        await asyncio.wait([self._reader])
        for pipe in (self._messages, *self._outputs.values()):
            pipe.close()

    async def _read(self) -> None:
        pipes = {name: pipe.fileno() for name, pipe in self._outputs.items()}
        messages = self._messages.fileno()
        for fd in (messages, *pipes.values()):
            os.set_blocking(fd, False)
        complete = False
        while True:
            if self.gone.done():
                complete = True
            else:
                outputs = pipes.values() if self._begun else ()
                await any_readable([messages, *outputs], self.gone)
            if self._begun:
                await self._catch_up(pipes, 1)
            piece = read_now(messages)
            if piece:
                await self._take(piece, pipes)
            elif complete:
                await self._catch_up(pipes, _CATCH_UP)
                break
        self._settle(False)

    async def _catch_up(self, pipes: dict[str, int], pieces: int) -> None:
        for name, fd in list(pipes.items()):
            for _ in range(pieces):
                data = read_now(fd)
                if data is None:
                    break
                if not data:
                    del pipes[name]
                    break
                if not data.endswith(b"\n"):  # `print` writes the end of its line in a second call
                    await asyncio.sleep(_LINE_SECONDS)
                    data += read_now(fd) or b""
                text = self._decoders[name].decode(data)
                if text:
                    await self._cell.send({"type": name, "text": text, "timestamp": time.time_ns()})

    async def _take(self, piece: bytes, pipes: dict[str, int]) -> None:
        self._line += piece
        while True:
            end = self._line.find(b"\n")
            if end < 0:
                return
            message = json.loads(self._line[:end])
            del self._line[: end + 1]
            if message["type"] == "number_of_executions":  # before all that the cell writes
                await self._cell.send(message)
                self._begun = True
                continue
            await self._catch_up(pipes, _CATCH_UP)
            if message["type"] == "end":
                self._settle(True)
            else:
                await self._cell.send(message)

    def _settle(self, alive: bool) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(alive)


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "wb", buffering=0)


class _Context:
    def __init__(self, cwd: str, spawn: Callable[[str], _Kernel]) -> None:
        self.id = str(uuid.uuid4())
        self.cwd = cwd
        self.turn = asyncio.Lock()
        self._spawn = spawn
        self._closed = False
        self.kernel = self._start()

    def describe(self) -> dict[str, Any]:
        return {"id": self.id, "language": "python", "cwd": self.cwd}

    def restart(self) -> None:
        """Replace the kernel, which loses everything that it knew."""
        self.kernel.kill()
        self.kernel = self._start()

    def living(self) -> _Kernel:
        """The kernel; one that could not be replaced when it died is replaced now."""
        if self.kernel.gone.done():
            self.kernel = self._start()
        return self.kernel

    def close(self) -> None:
        self._closed = True
        self.kernel.kill()

    def _start(self) -> _Kernel:
        kernel = self._spawn(self.cwd)
        kernel.gone.add_done_callback(lambda _: self._replace(kernel))
        return kernel

    def _replace(self, dead: _Kernel) -> None:
        if self.kernel is dead and not self._closed:
            with contextlib.suppress(OSError):  # too many processes: the next cell tries again
                self.kernel = self._start()


class Contexts:
    """The contexts of a machine."""

    def __init__(self, children: Children, source: str, home: str, envs: Mapping[str, str]) -> None:
        self._children = children
        self._source = source
        self._home = home
        self._envs = envs
        self._open: dict[str, _Context] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def open(self, stream: Stream, language: str, cwd: str | None) -> dict[str, Any]:
        """Start a kernel."""
        if language != "python":
            raise AgentError("invalid_argument", f"no kernel for the language {language!r}")
        folder = resolve(cwd or self._home, self._home)
        if not os.path.isdir(folder):
            raise AgentError("invalid_argument", f"cwd '{folder}' does not exist")
        context = _Context(folder, self._spawn)
        self._open[context.id] = context
        return context.describe()

    async def list(self, stream: Stream) -> builtins.list[dict[str, Any]]:
        """What is open."""
        return [context.describe() for context in self._open.values()]

    async def restart(self, stream: Stream, context_id: str) -> None:
        """Replace a context's kernel."""
        self._get(context_id).restart()

    async def close(self, stream: Stream, context_id: str) -> None:
        """End a context."""
        self._get(context_id).close()
        del self._open[context_id]

    async def execute(self, stream: Stream, context_id: str, code: str, env_vars: Mapping[str, str]) -> None:
        """Send the messages of a cell. When the host turns away, the cell is interrupted."""
        context = self._get(context_id)
        await context.turn.acquire()
        try:
            kernel = context.living()
        except OSError:
            context.turn.release()
            raise
        cell = _Cell(stream)
        survived = asyncio.get_running_loop().create_future()
        task = asyncio.get_running_loop().create_task(
            self._run(context, kernel, cell, code, env_vars, survived)
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            alive = await survived
        except asyncio.CancelledError:
            if not cell.over:
                kernel.interrupt()
            raise
        if not alive:
            restarted = {"name": "ContextRestarting", "value": "Context was restarted", "traceback": ""}
            await cell.send({"type": "error", **restarted})
        await cell.send({"type": "end_of_execution"})

    async def _run(
        self,
        context: _Context,
        kernel: _Kernel,
        cell: _Cell,
        code: str,
        env_vars: Mapping[str, str],
        survived: asyncio.Future[bool],
    ) -> None:
        """Run a cell to its real end, whoever still listens; only then is it the next one's turn."""
        try:
            alive = await kernel.run(cell, _with_variables(code, env_vars))
            cell.over = True
            if not survived.done():
                survived.set_result(alive)
            if env_vars and alive:
                await kernel.run(cell, self._without_variables(env_vars), silent=True)
            if not alive:
                await asyncio.wait([kernel.gone])
        finally:
            context.turn.release()

    def _without_variables(self, env_vars: Mapping[str, str]) -> str:
        lines = ["import os"]
        for name in env_vars:
            if name in self._envs:
                lines.append(f"os.environ[{name!r}] = {self._envs[name]!r}")
            else:
                lines.append(f"os.environ.pop({name!r}, None)")
        return "\n".join(lines)

    def _get(self, context_id: str) -> _Context:
        try:
            return self._open[context_id]
        except KeyError:
            raise AgentError("not_found", f"Context {context_id} not found") from None

    def _spawn(self, cwd: str) -> _Kernel:
        return _Kernel(self._children, self._source, cwd, {**base_environment(self._home), **self._envs})


def _with_variables(code: str, env_vars: Mapping[str, str]) -> str:
    """The variables pasted in front of the code, as the service does it: a quote in one breaks the cell."""
    if not env_vars:
        return code
    first = next((line for line in code.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    lines = [f"{indent}import os; os.environ['{name}'] = '{value}'" for name, value in env_vars.items()]
    return "\n".join([*lines, code])
