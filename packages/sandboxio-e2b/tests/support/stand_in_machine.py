"""A machine for tests of the server's HTTP half alone: host processes, a folder, scripted cells.

It isolates nothing, so it runs what these tests themselves wrote and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from e2b_server.ports import Context, Egress, Ended, Entry, MachineError, Output, ProcessConfig

__all__ = ["Boots", "StandInMachine"]

SPEAK = "say "
PIECE = 32 * 1024


class Boots:
    """Makes stand-ins and keeps them, with what each was booted with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machines: list[StandInMachine] = []
        self.fails = False

    @property
    def last(self) -> StandInMachine:
        return self.machines[-1]

    async def __call__(
        self, *, template: str, envs: Mapping[str, str], egress: Egress, lifetime: float
    ) -> StandInMachine:
        if self.fails:
            raise RuntimeError("no room")
        home = self.folder / str(len(self.machines))
        home.mkdir()
        self.machines.append(StandInMachine(home, template, envs, egress, lifetime))
        return self.last


class StandInMachine:
    """Implements `ports.Machine` on the host."""

    def __init__(
        self, home: Path, template: str, envs: Mapping[str, str], egress: Egress, lifetime: float
    ) -> None:
        self.home = str(home)
        self.template, self.envs, self.egress, self.lifetime = template, envs, egress, lifetime
        self.files = StandInFiles(home)
        self.kernels = StandInKernels(self.home)
        self.is_down = False
        self.shutdown_fails = False
        self._processes: dict[int, StandInProcess] = {}

    @property
    def processes(self) -> Mapping[int, StandInProcess]:
        return {pid: each for pid, each in self._processes.items() if each.is_alive}

    async def start(self, config: ProcessConfig, *, stdin: bool) -> StandInProcess:
        if config.cwd is not None and not Path(config.cwd).is_dir():
            raise MachineError("invalid_argument", f"cwd '{config.cwd}' does not exist")
        child = await asyncio.create_subprocess_exec(
            config.cmd,
            *config.args,
            cwd=config.cwd or self.home,
            env={**os.environ, "HOME": self.home, **self.envs, **config.envs},
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=PIECE,
        )
        process = StandInProcess(child, config)
        self._processes[process.pid] = process
        return process

    async def write_hosts(self, content: bytes) -> None:
        raise MachineError("permission_denied", "this stand-in shares its host's files")

    async def set_egress(self, egress: Egress) -> None:
        self.egress = egress

    async def shutdown(self) -> None:
        if self.shutdown_fails:
            raise RuntimeError("stuck")
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes.values():
            await process.reap()
        self.is_down = True


class StandInProcess:
    """A child of this Python process, with one listener at most."""

    def __init__(self, child: asyncio.subprocess.Process, config: ProcessConfig) -> None:
        self.config = config
        self._child = child
        self._pieces: asyncio.Queue[Output | None] = asyncio.Queue(1)
        self.read = 0
        self._readers = [
            asyncio.create_task(self._read("stdout", child.stdout)),
            asyncio.create_task(self._read("stderr", child.stderr)),
        ]

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_alive(self) -> bool:
        return self._child.returncode is None

    async def events(self) -> AsyncIterator[Output | Ended]:
        ends = 0
        while ends < len(self._readers):
            piece = await self._pieces.get()
            if piece is None:
                ends += 1
            else:
                yield piece
        code = await self._child.wait()
        if code < 0:
            yield Ended(-1, False, "signal: killed")
        else:
            yield Ended(code, True, f"exit status {code}")

    async def send_input(self, data: bytes) -> None:
        if self._child.stdin is None:
            raise MachineError("failed_precondition", "stdin not enabled or closed")
        self._child.stdin.write(data)
        await self._child.stdin.drain()

    async def close_input(self) -> None:
        if self._child.stdin is None:
            raise MachineError("failed_precondition", "stdin not enabled or closed")
        self._child.stdin.close()

    async def signal(self, name: str) -> None:
        self._child.send_signal(signal.Signals[name.removeprefix("SIGNAL_")])

    async def reap(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        # Closes the pipes, which nobody may have read to their end.
        self._child._transport.close()  # type: ignore[attr-defined]
        await self._child.wait()

    async def _read(self, stream: Any, pipe: asyncio.StreamReader | None) -> None:
        assert pipe is not None
        while data := await pipe.read(PIECE):
            self.read += len(data)
            await self._pieces.put(Output(stream, data))
        await self._pieces.put(None)


class StandInFiles:
    """A folder of the host, taken for the whole file system."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def _at(self, path: str) -> Path:
        return self._home / path.lstrip("/")

    async def stat(self, path: str) -> Entry:
        target = self._at(path)
        if not target.exists():
            raise MachineError("not_found", f"path not found: {path}")
        found = target.stat()
        return Entry(
            name=target.name,
            type="FILE_TYPE_DIRECTORY" if target.is_dir() else "FILE_TYPE_FILE",
            path="/" + str(target.relative_to(self._home)),
            size=found.st_size,
            mode=stat.S_IMODE(found.st_mode),
            permissions=stat.filemode(found.st_mode),
            owner="user",
            group="user",
            modified_at=found.st_mtime,
            symlink_target=os.readlink(target) if target.is_symlink() else None,
        )

    async def list(self, path: str, depth: int) -> Sequence[Entry]:
        folder = self._at(path)
        if folder.is_file():
            raise MachineError("invalid_argument", f"path is not a directory: {path}")
        await self.stat(path)
        found = [each.relative_to(self._home) for each in sorted(folder.rglob("*"))]
        nearest = len(folder.relative_to(self._home).parts)
        return [await self.stat(str(each)) for each in found if len(each.parts) - nearest <= depth]

    async def make_dir(self, path: str) -> Entry:
        try:
            self._at(path).mkdir(parents=True)
        except FileExistsError as error:
            raise MachineError("already_exists", f"directory already exists: {path}") from error
        return await self.stat(path)

    async def move(self, source: str, destination: str) -> Entry:
        await self.stat(source)
        self._at(source).rename(self._at(destination))
        return await self.stat(destination)

    async def remove(self, path: str) -> None:
        target = self._at(path)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    async def size(self, path: str) -> int:
        if self._at(path).is_dir():
            raise MachineError("invalid_argument", f"path is a directory: {path}")
        return (await self.stat(path)).size

    async def read(self, path: str) -> AsyncIterator[bytes]:
        with self._at(path).open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    async def write(self, path: str, data: AsyncIterator[bytes]) -> Entry:
        target = self._at(path)
        if target.is_dir():
            raise MachineError("invalid_argument", f"path is a directory: {path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            async for piece in data:
                file.write(piece)
        return await self.stat(path)


class StandInKernels:
    """Contexts whose code is `say TEXT`, `wait`, `fail` or `flood`."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._open: dict[str, Context] = {}
        self._opened = 0
        self.interrupted = asyncio.Event()
        self.restarted: list[str] = []
        self.environments: list[Mapping[str, str]] = []

    async def open(self, language: str, cwd: str | None) -> Context:
        if language != "python":
            raise MachineError("invalid_argument", f"no kernel for {language}")
        self._opened += 1
        context = Context(f"context-{self._opened}", language, cwd or self._cwd)
        self._open[context.id] = context
        return context

    def has(self, context_id: str) -> bool:
        return context_id in self._open

    async def contexts(self) -> Sequence[Context]:
        return list(self._open.values())

    async def restart(self, context_id: str) -> None:
        self._known(context_id)
        self.restarted.append(context_id)

    async def close(self, context_id: str) -> None:
        self._known(context_id)
        del self._open[context_id]

    async def execute(
        self, context_id: str, code: str, env_vars: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        self._known(context_id)
        self.environments.append(env_vars)
        yield {"type": "number_of_executions", "execution_count": 1}
        if code.startswith(SPEAK):
            yield {"type": "stdout", "text": code.removeprefix(SPEAK), "timestamp": 1}
            yield {"type": "result", "text": context_id, "is_main_result": True}
        elif code == "fail":
            yield {"type": "error", "name": "ZeroDivisionError", "value": "no", "traceback": "…"}
        elif code == "wait":
            try:
                await asyncio.Event().wait()
            finally:
                self.interrupted.set()
        yield {"type": "end_of_execution"}

    def _known(self, context_id: str) -> None:
        if not self.has(context_id):
            raise MachineError("not_found", f"no context {context_id}")
