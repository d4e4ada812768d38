"""The code interpreter: contexts, and cells that tell what they do line by line."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from .exchange import exchange_of, sandbox_of
from .ports import Context, MachineError
from .schema import Malformed, mapping, optional, read, record, text
from .state import Sandbox
from .streaming import Streamed, paced

__all__ = ["ROUTES"]

_KEEPALIVE = 5.0  # seconds
_TAKEN_BACK = 499  # for nobody: a request whose end never came is not carried out
_ALIASES = {"js": "javascript", "ts": "typescript"}
_EXECUTE = record(
    required={"code": text},
    optional={
        "context_id": optional(text),
        "language": optional(text),
        "env_vars": optional(mapping),
    },
)
_OPEN = record(optional={"language": optional(text), "cwd": optional(text)})


async def _execute(request: Request) -> Response:
    sandbox = sandbox_of(request.scope)
    try:
        asked = read(await request.body(), _EXECUTE)
    except ClientDisconnect:
        return Response(status_code=_TAKEN_BACK)
    except Malformed as error:
        return JSONResponse({"detail": str(error)}, 422)
    context_id, language = asked.get("context_id"), asked.get("language")
    if context_id and language:
        return PlainTextResponse("Only one of context_id or language can be provided", 400)
    try:
        if not context_id:
            context_id = await _default_context(sandbox, _language(language))
        elif not sandbox.machine.kernels.has(context_id):
            return _unknown(context_id)
        cell = sandbox.machine.kernels.execute(context_id, asked["code"], asked.get("env_vars") or {})
    except MachineError as error:
        return _failed(error)
    lines = _lines(cell, omit_end=exchange_of(request.scope).omit_end)
    return Streamed(lines, media_type="application/x-ndjson")


async def _lines(cell: AsyncIterator[Mapping[str, Any]], *, omit_end: bool) -> AsyncGenerator[bytes, None]:
    messages = paced(cell, _KEEPALIVE)
    try:
        async for message in messages:
            told = {"type": "keepalive"} if message is None else message
            if not (omit_end and told["type"] == "end_of_execution"):
                yield json.dumps(told).encode("ascii") + b"\n"
    finally:
        await messages.aclose()


async def _open(request: Request) -> Response:
    try:
        asked = read(await request.body(), _OPEN)
    except Malformed as error:
        return JSONResponse({"detail": str(error)}, 422)
    try:
        kernels = sandbox_of(request.scope).machine.kernels
        context = await kernels.open(_language(asked.get("language")), asked.get("cwd"))
    except MachineError as error:
        return _failed(error)
    return JSONResponse(_described(context))


async def _list(request: Request) -> Response:
    contexts = await sandbox_of(request.scope).machine.kernels.contexts()
    return JSONResponse([_described(context) for context in contexts])


async def _restart(request: Request) -> Response:
    return await _change(request, restart=True)


async def _close(request: Request) -> Response:
    return await _change(request, restart=False)


async def _change(request: Request, *, restart: bool) -> Response:
    context_id = request.path_params["id"]
    kernels = sandbox_of(request.scope).machine.kernels
    try:
        await (kernels.restart(context_id) if restart else kernels.close(context_id))
    except MachineError as error:
        return _unknown(context_id) if error.code == "not_found" else _failed(error)
    return PlainTextResponse("")


async def _default_context(sandbox: Sandbox, language: str) -> str:
    """The context that runs cells which name none, opened at its first use."""
    async with sandbox.opening_context:
        known = sandbox.default_contexts.get(language)
        if known is None or not sandbox.machine.kernels.has(known):
            known = (await sandbox.machine.kernels.open(language, None)).id
            sandbox.default_contexts[language] = known
        return known


def _language(asked: str | None) -> str:
    name = (asked or "python").strip().lower()
    return _ALIASES.get(name, name)


def _described(context: Context) -> dict[str, str]:
    return {"id": context.id, "language": context.language, "cwd": context.cwd}


def _unknown(context_id: str) -> Response:
    return PlainTextResponse(f"Context {context_id} not found", 404)


def _failed(error: MachineError) -> Response:
    return PlainTextResponse(error.message, 500)


ROUTES = [
    Route("/execute", _execute, methods=["POST"], name="execute"),
    Route("/contexts", _open, methods=["POST"], name="open_context"),
    Route("/contexts", _list, methods=["GET"], name="list_contexts"),
    Route("/contexts/{id}/restart", _restart, methods=["POST"], name="restart_context"),
    Route("/contexts/{id}", _close, methods=["DELETE"], name="close_context"),
]
