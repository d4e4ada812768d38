"""Frames, in whatever pieces they arrive."""

from __future__ import annotations

import time

import pytest

from sandboxio_docker.multiplex import FrameReader


class Pieces:
    """A stream that hands out prepared pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def receive(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


async def read(*pieces: bytes, leftover: bytes = b"") -> list[tuple[str, bytes]]:
    reader = FrameReader(Pieces(*pieces), leftover)  # type: ignore[arg-type]
    found = []
    while (chunk := await reader.receive()) is not None:
        found.append((chunk.stream, chunk.data))
    return found


def joined(chunks: list[tuple[str, bytes]], stream: str) -> bytes:
    return b"".join(data for name, data in chunks if name == stream)


async def test_payloads_are_told_apart() -> None:
    assert await read(frame(1, b"out") + frame(2, b"err")) == [("stdout", b"out"), ("stderr", b"err")]


async def test_frames_of_one_stream_that_came_together_are_one_piece() -> None:
    assert await read(frame(1, b"a") + frame(1, b"b") + frame(1, b"c")) == [("stdout", b"abc")]


async def test_a_frame_may_be_cut_anywhere() -> None:
    whole = frame(1, b"hello") + frame(2, b"oops") + frame(1, b"world")
    for cut in range(len(whole) + 1):
        for leftover in (True, False):
            pieces = (whole[cut:],) if leftover else (whole[:cut], whole[cut:])
            found = await read(*(p for p in pieces if p), leftover=whole[:cut] if leftover else b"")
            assert joined(found, "stdout") == b"helloworld"
            assert joined(found, "stderr") == b"oops"


async def test_single_bytes_are_enough() -> None:
    whole = frame(1, b"hello") + frame(2, b"oops")
    found = await read(*(whole[i : i + 1] for i in range(len(whole))))
    assert joined(found, "stdout") == b"hello"
    assert joined(found, "stderr") == b"oops"


async def test_an_empty_frame_is_nothing() -> None:
    assert await read(frame(1, b"") + frame(1, b"x")) == [("stdout", b"x")]


async def test_a_size_that_lies_is_never_collected() -> None:
    header = bytes([1, 0, 0, 0]) + (2**32 - 1).to_bytes(4, "big")
    assert await read(header + b"x" * 10, b"y" * 10) == [("stdout", b"x" * 10), ("stdout", b"y" * 10)]


@pytest.mark.parametrize("header", [b"\x07\0\0\0\0\0\0\x01", b"\x01\0\0\x09\0\0\0\x01"])
async def test_what_is_no_frame_is_refused(header: bytes) -> None:
    with pytest.raises(ValueError, match="no frame"):
        await read(header + b"x")


async def test_frames_that_alternate_cost_no_more_when_they_arrive_together() -> None:
    pairs = (frame(1, b"o") + frame(2, b"e")) * 64

    async def seconds(*pieces: bytes) -> float:
        begin = time.perf_counter()
        await read(*pieces)
        return time.perf_counter() - begin

    apart = min([await seconds(*[pairs] * 1024) for _ in range(3)])
    together = min([await seconds(pairs * 1024) for _ in range(3)])
    assert together < 3 * apart
