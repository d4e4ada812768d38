"""The Docker backend of sandboxio: hardened containers behind one async API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandboxio_docker.backend import DockerBackend
    from sandboxio_docker.config import DockerConfig

__all__ = ["DockerBackend", "DockerConfig"]


def __getattr__(name: str) -> Any:
    if name == "DockerBackend":
        from sandboxio_docker.backend import DockerBackend

        return DockerBackend
    if name == "DockerConfig":
        from sandboxio_docker.config import DockerConfig

        return DockerConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
