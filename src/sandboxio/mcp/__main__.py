"""`python -m sandboxio.mcp`."""

import sys

from sandboxio.mcp import main

sys.exit(main())
