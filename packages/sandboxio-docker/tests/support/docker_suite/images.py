"""The images to test with."""

from __future__ import annotations

import os

PYTHON_IMAGE = os.environ.get("SBX_DOCKER_IMAGE") or "python:3.12-slim"
BUSYBOX_IMAGE = "sandboxio/busybox:test"
SHELLLESS_IMAGE = "sandboxio/noshell:test"
