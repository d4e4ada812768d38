"""What is known about first-party backends without importing them: the one table of names.

Nothing else in core names a provider. A backend from elsewhere needs no row here: its entry point
is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandboxio.models import Capability

__all__ = [
    "DEFAULT_BACKEND",
    "EXAMPLE_TARGET",
    "KNOWN_BACKENDS",
    "KnownBackend",
    "backends_with",
    "install_command",
]

DEFAULT_BACKEND: Final = "docker"
"""What `create()` uses when it is told nothing."""

EXAMPLE_TARGET: Final = "docker://python:3.12-slim"
"""What a hint shows as a well-formed target."""


def install_command(extra: str) -> str:
    """The command that installs an extra, in a checkout of the project, and removes no other.

    The names on the public registry are not ours before a release, so no command takes them from there.

    Example: `install_command("mcp")`
    """
    return f"uv sync --inexact --extra {extra}"


@dataclass(frozen=True, slots=True)
class KnownBackend:
    """A row of the table.

    Attributes:
        name: The name in a DSN.
        distribution: The distribution that provides it.
        extra: The extra that installs it; `None` while this version has no adapter for it.
        credentials: The environment variables that its provider reads credentials from.
        sign_in: How a credential is given to it, as words for a hint.
        capabilities: The names of the flags that its sandboxes usually declare.
        key_prefix: What its API keys begin with; empty if that is not known.
    """

    name: str
    distribution: str
    extra: str | None
    credentials: tuple[str, ...]
    sign_in: str
    capabilities: frozenset[str] = frozenset()
    key_prefix: str = ""

    @property
    def install_command(self) -> str | None:
        """The command that installs it, in a checkout of the project."""
        return None if self.extra is None else install_command(self.extra)

    @property
    def one_shot_command(self) -> str | None:
        """The command that runs the demo with it and installs nothing, in a checkout."""
        return None if self.extra is None else f'uvx --from ".[{self.extra}]" sandboxio demo'


KNOWN_BACKENDS: Final[Mapping[str, KnownBackend]] = MappingProxyType(
    {
        row.name: row
        for row in (
            KnownBackend(
                name="docker",
                distribution="sandboxio-docker",
                extra="docker",
                credentials=(),
                sign_in="run `docker login`: registry credentials are read from DOCKER_CONFIG",
                capabilities=frozenset(
                    {
                        "RUN_COMMAND",
                        "RUN_CODE",
                        "STREAMING",
                        "NETWORK_POLICY",
                        "RAW_OUTPUT",
                        "FILESYSTEM",
                        "UPLOAD_DOWNLOAD",
                    }
                ),
            ),
            KnownBackend(
                name="e2b",
                distribution="sandboxio-e2b",
                extra="e2b",
                credentials=("E2B_API_KEY",),
                sign_in="set the environment variable E2B_API_KEY",
                capabilities=frozenset(
                    {
                        "RUN_COMMAND",
                        "RUN_CODE",
                        "STATEFUL_CODE",
                        "STREAMING",
                        "FILESYSTEM",
                        "UPLOAD_DOWNLOAD",
                        "NETWORK_POLICY",
                        "NETWORK_ALLOWLIST",
                        "RAW_OUTPUT",
                    }
                ),
                key_prefix="e2b_",
            ),
            KnownBackend(
                name="modal",
                distribution="sandboxio-modal",
                extra=None,
                credentials=("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"),
                sign_in="set the environment variables MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
            ),
        )
    }
)


def backends_with(flag: Capability) -> tuple[str, ...]:
    """The names of the backends of this version whose sandboxes usually declare a capability.

    It is what a hint names, so the fake is not among them: it declares much and executes nothing.

    Args:
        flag: One capability, or several that are all wanted.

    Example: `backends_with(Capability.STREAMING)`
    """
    wanted = {member.name for member in flag}
    return tuple(
        row.name for row in KNOWN_BACKENDS.values() if row.extra is not None and wanted <= row.capabilities
    )
