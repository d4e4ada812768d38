"""`python -m sandboxio.mcp`."""

import os

from sandboxio.mcp import main

# A thread of a provider's SDK that calls in while the interpreter goes down would abort it.
os._exit(main())
