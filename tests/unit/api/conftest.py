"""The recording backend, registered for each test anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sandboxio

from .recording import RecordingBackend


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    RecordingBackend.made.clear()
    sandboxio.register("recording", f"{RecordingBackend.__module__}:RecordingBackend")
    yield
    RecordingBackend.made.clear()
