"""`python -m sandboxio.mcp` with one more backend, `planted`."""

import sys

import sandboxio
from sandboxio.mcp import main

sandboxio.register("planted", "planted_backend:PlantedBackend")
sys.exit(main(["--backend", "planted://", *sys.argv[1:]]))
