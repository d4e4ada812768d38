"""envd's process service: starting commands, listening to them, and talking to them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.routing import Route

from .connect import Call, Message, RpcError, client_stream, server_stream, unary
from .ports import Ended, MachineError, Output, Process, ProcessConfig
from .schema import boolean, decoded, mapping, nothing, one_of, record, text, texts, whole
from .state import Sandbox
from .streaming import paced

__all__ = ["ROUTES"]

_CONFIG = record(required={"cmd": text}, optional={"args": texts, "envs": mapping, "cwd": text})
_SELECTOR = one_of({"pid": whole(0, 2**32 - 1), "tag": nothing})
_INPUT = one_of({"stdin": decoded, "pty": nothing})
_START = record(required={"process": _CONFIG}, optional={"stdin": boolean, "pty": nothing, "tag": nothing})
_SELECTED = record(required={"process": _SELECTOR})
_SIGNAL = record(required={"process": _SELECTOR, "signal": text})
_SEND_INPUT = record(required={"process": _SELECTOR, "input": _INPUT})
_STREAM_INPUT = one_of(
    {
        "start": _SELECTED,
        "data": record(required={"input": _INPUT}),
        "keepalive": record(),
    }
)
_SIGNALS = ("SIGNAL_SIGTERM", "SIGNAL_SIGKILL")


async def _start(call: Call, message: dict[str, Any]) -> AsyncGenerator[Message, None]:
    asked = message["process"]
    config = ProcessConfig(
        cmd=asked["cmd"],
        args=tuple(asked.get("args", ())),
        envs=asked.get("envs", {}),
        cwd=asked.get("cwd"),
    )
    deadline = call.deadline
    process = await call.machine.start(config, stdin=message.get("stdin", True))
    if call.timeout is not None:
        # The process belongs to its timeout and not to the connection that started it.
        call.sandbox.run_errand(_kill_after(call.sandbox, process, call.timeout))
    return _events(call, process, deadline)


async def _attach(call: Call, message: dict[str, Any]) -> AsyncGenerator[Message, None]:
    return _events(call, _selected(call, message), call.deadline)


async def _kill_after(sandbox: Sandbox, process: Process, seconds: float) -> None:
    await asyncio.sleep(seconds)
    if sandbox.machine.processes.get(process.pid) is process:
        try:
            await process.signal("SIGNAL_SIGKILL")
        except MachineError as error:
            if error.code != "not_found":
                raise


def _events(call: Call, process: Process, deadline: float | None) -> AsyncGenerator[Message, None]:
    # Listening begins here, before anything is sent, so that no output is missed meanwhile.
    return _told(call, process.pid, process.events(), deadline)


async def _told(
    call: Call, pid: int, happenings: AsyncIterator[Output | Ended], deadline: float | None
) -> AsyncGenerator[Message, None]:
    yield _event("start", {"pid": pid})
    happened = paced(happenings, call.keepalive, deadline)
    try:
        async for item in happened:
            if item is None:
                yield _event("keepalive", {})
            elif isinstance(item, Output):
                yield _event("data", {item.stream: base64.b64encode(item.data).decode("ascii")})
            elif not call.omit_end:
                yield _event("end", _end(item))
    finally:
        await happened.aclose()


def _event(kind: str, content: dict[str, Any]) -> Message:
    return {"event": {kind: content}}


def _end(ended: Ended) -> dict[str, Any]:
    fields = {
        "exitCode": ended.exit_code,
        "exited": ended.exited,
        "status": ended.status,
        "error": ended.status if ended.exit_code else "",
    }
    # Zero values are left out on the wire, so success has no exit code.
    return {name: value for name, value in fields.items() if value}


async def _list(call: Call, _message: Any) -> Message:
    found = [_described(pid, each.config) for pid, each in sorted(call.machine.processes.items())]
    return {"processes": found} if found else {}


def _described(pid: int, config: ProcessConfig) -> Message:
    described: dict[str, Any] = {"cmd": config.cmd}
    if config.args:
        described["args"] = list(config.args)
    if config.envs:
        described["envs"] = dict(config.envs)
    if config.cwd is not None:
        described["cwd"] = config.cwd
    return {"config": described, "pid": pid}


async def _send_signal(call: Call, message: dict[str, Any]) -> Message:
    if message["signal"] not in _SIGNALS:
        raise RpcError("unimplemented", f"invalid signal: {message['signal']}")
    await _selected(call, message).signal(message["signal"])
    return {}


async def _send_input(call: Call, message: dict[str, Any]) -> Message:
    await _selected(call, message).send_input(message["input"]["stdin"])
    return {}


async def _close_input(call: Call, message: dict[str, Any]) -> Message:
    await _selected(call, message).close_input()
    return {}


async def _stream_input(call: Call, messages: AsyncIterator[dict[str, Any]]) -> Message:
    process: Process | None = None
    async for message in messages:
        if "start" in message:
            process = _selected(call, message["start"])
        elif process is None:
            raise RpcError("invalid_argument", "the first message of an input stream is its start")
        elif "data" in message:
            await process.send_input(message["data"]["input"]["stdin"])
    return {}


def _selected(call: Call, message: dict[str, Any]) -> Process:
    pid = message["process"]["pid"]
    process = call.machine.processes.get(pid)
    if process is None:
        raise RpcError("not_found", f"process with pid {pid} not found")
    return process


def _route(method: str, endpoint: Any, name: str) -> Route:
    return Route(f"/process.Process/{method}", endpoint, methods=["POST"], name=name)


ROUTES = [
    _route("Start", server_stream(_start, _START), "start"),
    _route("Connect", server_stream(_attach, _SELECTED), "attach"),
    _route("List", unary(_list, record()), "processes"),
    _route("SendSignal", unary(_send_signal, _SIGNAL), "signal"),
    _route("SendInput", unary(_send_input, _SEND_INPUT), "send_input"),
    _route("CloseStdin", unary(_close_input, _SELECTED), "close_input"),
    _route("StreamInput", client_stream(_stream_input, _STREAM_INPUT), "stream_input"),
]
