"""The host's side of the wire to the agent in a machine; `agent/mux.py` is the other one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio

from sandboxio_docker.container import Attachment, Container
from sandboxio_docker.stream import send_all

from .agent.mux import CREDIT, PIECE, WINDOW, frame
from .ports import MachineError

__all__ = ["Guest", "GuestStream"]

_FOLDER: Final = Path(__file__).parent / "agent"
_MODULES: Final = ("mux", "pipes", "children", "files", "processes", "contexts", "main")
_LAST_WORDS: Final = 4096

# Nothing of the agent is written to the machine's disk, where what runs there could change it.
_LOADER: Final = """
import json, os, sys, types
def take(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit("the host is gone")
        data += piece
    return data
bundle = json.loads(take(int.from_bytes(take(4), "big")))
sys.modules["agent"] = types.ModuleType("agent")
sys.modules["agent"].__path__ = []
for name, source in bundle["modules"].items():
    module = types.ModuleType("agent." + name)
    module.__package__ = "agent"
    sys.modules["agent." + name] = module
    exec(compile(source, "agent/" + name + ".py", "exec"), module.__dict__)
sys.modules["agent.main"].main(bundle["home"], bundle["envs"], bundle["kernel"])
"""


class GuestStream:
    """One request to the agent, and the bytes that go with it in both directions."""

    def __init__(self, guest: Guest, number: int) -> None:
        self._guest = guest
        self._number = number
        self._inbox: deque[tuple[str, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._owed = 0
        self._credit = WINDOW
        self._credited = asyncio.Event()
        self._first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether the agent has said its last word."""
        return self._end.done()

    async def reply(self) -> Any:
        """What the agent answers while the stream goes on."""
        await asyncio.wait([self._first, self._end], return_when=asyncio.FIRST_COMPLETED)
        return self._first.result() if self._first.done() else self._end.result()

    async def receive(self) -> tuple[str, bytes] | None:
        """The next bytes and their tag, or `None` when the stream has ended well.

        Raises:
            MachineError: It has ended with a refusal.
        """
        while not self._inbox:
            if self._end.done():
                self._end.result()
                return None
            self._arrived.clear()
            await self._arrived.wait()
        tag, data = self._inbox.popleft()
        self._owed += len(data)
        if self._owed >= CREDIT and not self._end.done():
            self._post({"op": "credit", "bytes": self._owed})
            self._owed = 0
        return tag, data

    async def send(self, data: bytes) -> None:
        """Send bytes; waits while the agent does not deal with them.

        Raises:
            MachineError: The agent has refused them.
        """
        view = memoryview(data)
        while view:
            await self._credit_or_end()
            piece = view[: min(PIECE, self._credit)]
            view = view[len(piece) :]
            self._credit -= len(piece)
            self._post({"op": "data"}, bytes(piece))

    def finish(self) -> None:
        """Say that no more bytes come."""
        self._post({"op": "eof"})

    async def result(self) -> Any:
        """The value that the stream ends with.

        Raises:
            MachineError: It ends with a refusal.
        """
        return await asyncio.shield(self._end)

    def close(self) -> None:
        """Turn away from the stream. One that has ended is left alone."""
        if not self._end.done():
            self._guest.forget(self._number)
            self._end.cancel()
            self._arrived.set()
            self._credited.set()
            self._post({"op": "cancel"})

    def take(self, header: Mapping[str, Any], data: bytes) -> None:
        """Handle a frame of the agent's."""
        match header["op"]:
            case "data":
                self._inbox.append((header["tag"], data))
            case "credit":
                self._credit += header["bytes"]
            case "reply":
                self._first.set_result(header["value"])
            case "end":
                self._settle(None, header["value"])
            case "error":
                self._settle(MachineError(header["code"], header["message"]), None)
            case op:
                raise AssertionError(f"the agent sent {op!r}")
        self._arrived.set()
        self._credited.set()

    def fail(self, error: MachineError) -> None:
        """The machine is gone."""
        self._settle(error, None)
        self._arrived.set()
        self._credited.set()

    async def _credit_or_end(self) -> None:
        while self._credit <= 0 and not self._end.done():
            self._credited.clear()
            await self._credited.wait()
        if self._end.done():
            self._end.result()

    def _settle(self, error: MachineError | None, value: Any) -> None:
        if self._end.done():
            return
        self._guest.forget(self._number)
        if error is None:
            self._end.set_result(value)
        else:
            self._end.set_exception(error)
            self._end.exception()  # it is told to whoever asks, and nobody has to

    def _post(self, header: dict[str, Any], data: bytes = b"") -> None:
        self._guest.post({"id": self._number, **header}, data)


class Guest:
    """The agent in one machine."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._streams: dict[int, GuestStream] = {}
        self._number = 0
        self._outbox: deque[bytes] = deque()
        self._posted = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._words = b""
        self._lost: MachineError | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(cls, container: Container, home: str, envs: Mapping[str, str]) -> Guest:
        """Start the agent in a container and wait for its first word."""
        exec_id = await container.create_exec(["python3", "-I", "-X", "utf8", "-c", _LOADER], stdin=True)
        guest = cls(await container.start_exec(exec_id))
        bundle = {
            "modules": {name: (_FOLDER / f"{name}.py").read_text() for name in _MODULES},
            "kernel": (_FOLDER / "kernel.py").read_text(),
            "home": home,
            "envs": dict(envs),
        }
        text = json.dumps(bundle).encode()
        guest._outbox.append(len(text).to_bytes(4, "big") + text)
        guest._tasks = [asyncio.create_task(guest._read()), asyncio.create_task(guest._write())]
        try:
            await guest._ready
        except BaseException:
            await guest.close()
            raise
        return guest

    def open(self, kind: str, **args: Any) -> GuestStream:
        """Open a stream.

        Raises:
            MachineError: The machine is gone.
        """
        if self._lost is not None:
            raise self._lost
        self._number += 1
        stream = self._streams[self._number] = GuestStream(self, self._number)
        self.post({"id": self._number, "op": "open", "kind": kind, "args": args})
        return stream

    async def call(self, kind: str, **args: Any) -> Any:
        """Ask for something that is one answer. It is carried out even if nobody waits for it."""
        return await self.open(kind, **args).result()

    def post(self, header: Mapping[str, Any], data: bytes = b"") -> None:
        """Send a frame. What waits to be sent is bounded by the credit of all streams."""
        if self._lost is None:
            self._outbox.append(frame(header, data))
            self._posted.set()

    def forget(self, number: int) -> None:
        """A stream is over."""
        self._streams.pop(number, None)

    async def close(self) -> None:
        """Break the connection off. Idempotent."""
        self._fail(MachineError("unavailable", "the machine has been shut down"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._attachment.stream.close()

    async def _read(self) -> None:
        buffer = bytearray()
        try:
            while (chunk := await self._attachment.frames.receive()) is not None:
                if chunk.stream == "stderr":
                    self._words = (self._words + chunk.data)[-_LAST_WORDS:]
                    continue
                buffer += chunk.data
                self._parse(buffer)
        except (OSError, anyio.BrokenResourceError):
            pass
        words = self._words.decode("utf-8", "replace")
        self._fail(MachineError("unavailable", f"the machine is gone {words}".rstrip()))

    def _parse(self, buffer: bytearray) -> None:
        position = 0
        while len(buffer) - position >= 8:
            head = position + 8
            body = head + int.from_bytes(buffer[position : position + 4], "big")
            end = body + int.from_bytes(buffer[position + 4 : position + 8], "big")
            if len(buffer) < end:
                break
            self._take(json.loads(buffer[head:body]), bytes(buffer[body:end]))
            position = end
        del buffer[:position]

    def _take(self, header: dict[str, Any], data: bytes) -> None:
        number = header["id"]
        if number == 0:
            if not self._ready.done():
                self._ready.set_result(None)
        elif number in self._streams:
            self._streams[number].take(header, data)

    async def _write(self) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):  # the reader notices the end
            while True:
                while self._outbox:
                    await send_all(self._attachment.stream, self._outbox.popleft())
                self._posted.clear()
                await self._posted.wait()

    def _fail(self, error: MachineError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        self._outbox.clear()
        if not self._ready.done():
            self._ready.set_exception(error)
        for stream in list(self._streams.values()):
            stream.fail(error)
