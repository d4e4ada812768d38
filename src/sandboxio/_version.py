"""The version of this distribution, stated once for code that must not read package metadata."""

from typing import Final

__version__: Final = "0.1.0.dev1"
