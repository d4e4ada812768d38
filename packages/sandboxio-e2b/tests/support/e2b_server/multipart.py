"""Multipart bodies, part by part and never held whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

__all__ = ["MultipartError", "Part", "parts"]


class MultipartError(Exception):
    """The body is not what its content type says."""


@dataclass(frozen=True)
class Part:
    """One field of a form.

    Attributes:
        name: The field's name.
        filename: As it was sent, folders and leading slash included; `None` for a plain field.
        content: To be read before the next part is asked for; what is left unread is skipped.
    """

    name: str
    filename: str | None
    content: AsyncIterator[bytes]


@dataclass(frozen=True)
class _Headers:
    name: str
    filename: str | None


class _PartEnd:
    pass


class _BodyEnd:
    pass


_Event = _Headers | bytes | _PartEnd | _BodyEnd


async def parts(content_type: str, body: AsyncIterator[bytes]) -> AsyncGenerator[Part, None]:
    """The parts of a `multipart/form-data` body.

    Raises:
        MultipartError: No boundary, a broken body, or one that ends too early.
    """
    events = _events(_boundary(content_type), body)
    try:
        async for event in events:
            match event:
                case _Headers(name, filename):
                    content = _content(events)
                    yield Part(name, filename, content)
                    async for _ in content:
                        pass
                case _BodyEnd():
                    return
        raise MultipartError("multipart: NextPart: EOF")
    finally:
        await events.aclose()


async def _content(events: AsyncIterator[_Event]) -> AsyncIterator[bytes]:
    async for event in events:
        if not isinstance(event, bytes):
            return
        yield event
    raise MultipartError("unexpected EOF")


async def _events(boundary: bytes, body: AsyncIterator[bytes]) -> AsyncGenerator[_Event, None]:
    pending: list[_Event] = []
    parser = MultipartParser(boundary, _Callbacks(pending).table())
    async for chunk in body:
        try:
            parser.write(chunk)
        except MultipartParseError as error:
            raise MultipartError(str(error)) from error
        while pending:
            yield pending.pop(0)


class _Callbacks:
    """Collects what the parser finds in one chunk, in its order."""

    def __init__(self, found: list[_Event]) -> None:
        self._found = found
        self._name = self._value = b""
        self._disposition = b""

    def table(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": lambda: self._found.append(_PartEnd()),
            "on_end": lambda: self._found.append(_BodyEnd()),
        }

    def _begin(self) -> None:
        self._name = self._value = self._disposition = b""

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _headers_finished(self) -> None:
        # The parser library drops the folders of a file name, so the header is read here.
        header = Message()
        header["content-disposition"] = self._disposition.decode("utf-8", "surrogateescape")
        if header.get_content_disposition() != "form-data":
            raise MultipartParseError("a part without content disposition form-data")
        name = header.get_param("name", header="content-disposition")
        filename = header.get_param("filename", header="content-disposition")
        self._found.append(_Headers(str(name or ""), None if filename is None else str(filename)))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._found.append(bytes(data[start:end]))


def _boundary(content_type: str) -> bytes:
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/form-data" or not isinstance(boundary, str):
        raise MultipartError("request Content-Type isn't multipart/form-data")
    return boundary.encode("latin-1")
