"""The log of the server's process, where the process has run out of descriptors."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import logging
import resource

from sandboxio import NetworkPolicy
from sandboxio.mcp.errors import Redaction
from sandboxio.mcp.holder import Profile
from sandboxio.mcp.logs import log_to_stderr
from sandboxio.mcp.server import server_for_sessions
from sandboxio.testing.fake import FakeBackend

log_to_stderr()
server_for_sessions(Profile(FakeBackend(), NetworkPolicy(), 60), Redaction([]))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
try:
    open("/dev/null")
except OSError:
    logging.getLogger("asyncio").exception("no descriptor is left")
print("goes on")
"""


def test_an_exception_is_logged_where_no_descriptor_is_left() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert done.stderr.startswith("ERROR asyncio: no descriptor is left\nTraceback")
