"""The threads that handles have, and a wait with a bound."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def our_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sandboxio-sync"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
