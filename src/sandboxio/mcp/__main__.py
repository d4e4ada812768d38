"""`python -m sandboxio.mcp`."""

import os
import sys
from contextlib import suppress

from sandboxio.mcp import main

number = main()
for stream in (sys.stdout, sys.stderr):
    with suppress(AttributeError, OSError, ValueError):  # it was closed, or has become full
        stream.flush()
# A thread of a provider's SDK that calls in while the interpreter goes down would abort it.
os._exit(number)
