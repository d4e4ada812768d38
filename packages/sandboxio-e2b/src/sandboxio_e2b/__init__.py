"""The E2B backend of sandboxio: microVMs behind one async API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandboxio_e2b.backend import E2BBackend
    from sandboxio_e2b.config import E2BConfig

__all__ = ["E2BBackend", "E2BConfig"]


def __getattr__(name: str) -> Any:
    if name == "E2BBackend":
        from sandboxio_e2b.backend import E2BBackend

        return E2BBackend
    if name == "E2BConfig":
        from sandboxio_e2b.config import E2BConfig

        return E2BConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
