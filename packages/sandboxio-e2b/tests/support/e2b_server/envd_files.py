"""envd's filesystem service: everything about files but their content."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.routing import Route

from .connect import Call, Message, unary
from .ports import Entry
from .schema import Malformed, record, text, whole

__all__ = ["ROUTES"]


def _path(value: Any, where: str) -> str:
    path = text(value, where)
    if not path or "\0" in path:
        raise Malformed(f"{where}: not a path")
    return path


_AT = record(required={"path": _path})
_LIST = record(required={"path": _path}, optional={"depth": whole(0, 2**32 - 1)})
_MOVE = record(required={"source": _path, "destination": _path})


async def _stat(call: Call, message: dict[str, Any]) -> Message:
    return {"entry": _on_the_wire(await call.machine.files.stat(message["path"]))}


async def _make_dir(call: Call, message: dict[str, Any]) -> Message:
    return {"entry": _on_the_wire(await call.machine.files.make_dir(message["path"]))}


async def _move(call: Call, message: dict[str, Any]) -> Message:
    moved = await call.machine.files.move(message["source"], message["destination"])
    return {"entry": _on_the_wire(moved)}


async def _list(call: Call, message: dict[str, Any]) -> Message:
    found = await call.machine.files.list(message["path"], message.get("depth") or 1)
    return {"entries": [_on_the_wire(entry) for entry in found]} if found else {}


async def _remove(call: Call, message: dict[str, Any]) -> Message:
    await call.machine.files.remove(message["path"])
    return {}


def _on_the_wire(entry: Entry) -> Message:
    """Protobuf's JSON: zero values left out, 64-bit numbers as strings."""
    modified = datetime.fromtimestamp(entry.modified_at, UTC).replace(tzinfo=None)
    fields: dict[str, Any] = {
        "name": entry.name,
        "type": "" if entry.type == "FILE_TYPE_UNSPECIFIED" else entry.type,
        "path": entry.path,
        "size": str(entry.size) if entry.size else "",
        "mode": entry.mode,
        "permissions": entry.permissions,
        "owner": entry.owner,
        "group": entry.group,
        "modifiedTime": modified.isoformat(timespec="microseconds") + "Z",
        "symlinkTarget": entry.symlink_target,
        "isSymlink": entry.symlink_target is not None,
    }
    return {name: value for name, value in fields.items() if value}


def _route(method: str, endpoint: Any, name: str) -> Route:
    return Route(f"/filesystem.Filesystem/{method}", endpoint, methods=["POST"], name=name)


ROUTES = [
    _route("Stat", unary(_stat, _AT), "stat"),
    _route("MakeDir", unary(_make_dir, _AT), "make_dir"),
    _route("Move", unary(_move, _MOVE), "move"),
    _route("ListDir", unary(_list, _LIST), "list_dir"),
    _route("Remove", unary(_remove, _AT), "remove"),
]
