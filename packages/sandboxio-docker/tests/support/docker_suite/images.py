"""The images to test with."""

from __future__ import annotations

import os
from typing import Protocol

PYTHON_IMAGE = os.environ.get("SBX_DOCKER_IMAGE") or "python:3.12-slim"
BUSYBOX_IMAGE = "sandboxio/busybox:test"
SHELLLESS_IMAGE = "sandboxio/noshell:test"


class ImageBuilder(Protocol):
    """Makes an image out of `base` by lines of a Dockerfile, and returns its name."""

    def __call__(self, name: str, *changes: str, base: str = PYTHON_IMAGE) -> str: ...
