"""File contents over plain HTTP, streamed in both directions."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .connect import DEFAULT_USER
from .control import error_reply
from .exchange import sandbox_of
from .multipart import MultipartError, parts
from .ports import Entry, Files, Machine, MachineError
from .streaming import Streamed

__all__ = ["ROUTES"]

_STATUS = {
    "not_found": 404,
    "invalid_argument": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "resource_exhausted": 507,
}
_ROOT = "root"
_HOSTS = "/etc/hosts"
_QUERY = frozenset({"path", "username"})
_PIECE = 64 * 1024


class _BadRequest(Exception):
    """A request that is wrong whatever the files are."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def _health(_request: Request) -> Response:
    return Response(status_code=204)


async def _read(request: Request) -> Response:
    files = sandbox_of(request.scope).machine.files
    try:
        path = _path_asked_for(request)
        if path is None:
            raise _BadRequest(400, "missing path")
        size = await files.size(path)
        content = files.read(path)
        first = await anext(content, b"")
    except (_BadRequest, MachineError) as error:
        return _refusal(error)
    headers = {
        "content-length": str(size),
        "content-disposition": f"inline; {_file_name(posixpath.basename(path))}",
    }
    return Streamed(_exactly(size, first, content), media_type="application/octet-stream", headers=headers)


async def _exactly(size: int, first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The promised number of bytes of a file that may grow or shrink while it is read."""
    left = size
    try:
        piece: bytes = first
        while left and piece:
            yield piece[:left]
            left -= len(piece[:left])
            piece = await anext(rest, b"") if left else b""
    finally:
        close = getattr(rest, "aclose", None)
        if close is not None:
            await close()


async def _write(request: Request) -> Response:
    machine = sandbox_of(request.scope).machine
    received = request.stream()
    try:
        path = _path_asked_for(request, users=(DEFAULT_USER, _ROOT))
        files = _AsRoot(machine) if request.query_params.get("username") == _ROOT else machine.files
        if any(name.startswith("x-metadata-") for name in request.headers):
            raise _BadRequest(400, "file metadata is not kept on this server")
        body = _unpacked(request.headers.get("content-encoding", "identity"), received)
        kind = request.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() == "application/octet-stream":
            if path is None:
                raise _BadRequest(400, "missing path")
            written = [await files.write(path, body)]
        else:
            written = await _write_parts(files, path, kind, body)
    except (_BadRequest, MachineError, MultipartError) as error:
        # A client that is still sending must be heard out, or it never sees the answer.
        async for _ in received:
            pass
        return _refusal(error)
    return JSONResponse([{"name": each.name, "type": "file", "path": each.path} for each in written])


class _AsRoot:
    """Writing as root: a machine has one user, but can replace the file that names hosts."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def write(self, path: str, data: AsyncIterator[bytes]) -> Entry:
        """Replace `/etc/hosts`; any other path may not be written."""
        if path != _HOSTS:
            raise MachineError("permission_denied", f"open {path}: permission denied")
        await self._machine.write_hosts(b"".join([piece async for piece in data]))
        return await self._machine.files.stat(path)


async def _write_parts(
    files: Files | _AsRoot, path: str | None, content_type: str, body: AsyncIterator[bytes]
) -> list[Entry]:
    written: list[Entry] = []
    async with aclosing(parts(content_type, body)) as form:
        async for part in form:
            if part.name != "file":
                continue
            target = path if path is not None else part.filename
            if not target:
                raise _BadRequest(400, "missing filename in form part")
            entry = await files.write(target, part.content)
            if entry.path in (each.path for each in written):
                raise _BadRequest(
                    400, f"you cannot upload multiple files to the same path '{entry.path}' multiple times"
                )
            written.append(entry)
    return written


async def _unpacked(encoding: str, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    if encoding == "identity":
        async for chunk in body:
            if chunk:
                yield chunk
        return
    if encoding != "gzip":
        raise _BadRequest(400, f"unsupported Content-Encoding: {encoding}")
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        async for chunk in body:
            while chunk:
                # Bounded, so that a small body cannot become a large memory.
                piece = unpacking.decompress(chunk, _PIECE)
                chunk = unpacking.unconsumed_tail
                if piece:
                    yield piece
    except zlib.error as error:
        raise _BadRequest(400, f"error reading gzip: {error}") from error
    if not unpacking.eof:
        raise _BadRequest(400, "error reading gzip: unexpected EOF")


def _path_asked_for(request: Request, *, users: Sequence[str] = (DEFAULT_USER,)) -> str | None:
    query = request.query_params
    if unknown := set(query.keys()) - _QUERY:
        raise _BadRequest(400, f"unknown query parameter {min(unknown)!r}")
    user = query.get("username", DEFAULT_USER)
    if user not in users:
        raise _BadRequest(401, f"error looking up user '{user}': user: unknown user {user}")
    path = query.get("path")
    if path is not None and (not path or "\0" in path):
        raise _BadRequest(400, f"invalid path {path!r}")
    return path


def _refusal(error: _BadRequest | MachineError | MultipartError) -> Response:
    match error:
        case _BadRequest():
            return error_reply(error.status, str(error))
        case MachineError():
            return error_reply(_STATUS.get(error.code, 500), error.message)
        case MultipartError():
            return error_reply(400, f"error parsing multipart form: {error}")


def _file_name(name: str) -> str:
    """The parameter as Go writes it: what is not plain ASCII is percent-encoded."""
    if name.isascii() and name.isprintable():
        return 'filename="' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"filename*=utf-8''{quote(name, safe='')}"


ROUTES = [
    Route("/health", _health, methods=["GET"], name="health"),
    Route("/files", _read, methods=["GET"], name="read"),
    Route("/files", _write, methods=["POST"], name="write"),
]
