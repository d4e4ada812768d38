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

__all__ = ["DEFAULT_BACKEND", "EXAMPLE_TARGET", "KNOWN_BACKENDS", "KnownBackend"]

DEFAULT_BACKEND: Final = "docker"
"""What `create()` uses when it is told nothing."""

EXAMPLE_TARGET: Final = "docker://python:3.12-slim"
"""What a hint shows as a well-formed target."""


@dataclass(frozen=True, slots=True)
class KnownBackend:
    """A row of the table.

    Attributes:
        name: The name in a DSN.
        distribution: The distribution that provides it.
        extra: The extra that installs it; `None` while this version has no adapter for it.
        credentials: The environment variables that its provider reads credentials from.
        sign_in: How a credential is given to it, as words for a hint.
        key_prefix: What its API keys begin with; empty if that is not known.
    """

    name: str
    distribution: str
    extra: str | None
    credentials: tuple[str, ...]
    sign_in: str
    key_prefix: str = ""

    @property
    def install_command(self) -> str | None:
        """The command that installs it, in a checkout of the project.

        The names on the public registry are not ours before a release, so no command takes them
        from there.
        """
        return None if self.extra is None else f"uv sync --extra {self.extra}"

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
            ),
            KnownBackend(
                name="e2b",
                distribution="sandboxio-e2b",
                extra=None,
                credentials=("E2B_API_KEY",),
                sign_in="set the environment variable E2B_API_KEY",
                key_prefix="e2b_",
            ),
        )
    }
)
