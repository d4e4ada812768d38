"""What can be set for the E2B backend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final, Self

from sandboxio.audit import AuditConfig
from sandboxio.errors import ConfigurationError

__all__ = ["E2BConfig"]

_DOMAIN: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class E2BConfig:
    """The configuration of the E2B backend. The key comes from `E2B_API_KEY` alone.

    Attributes:
        template: The template's name or id; `None` for the SDK's own code-interpreter template.
        domain: The domain of another E2B cluster; `None` for `E2B_DOMAIN` or the public service.
        create_timeout: Seconds that creating a sandbox may take.
        allow_dns: `True` opens E2B's name server, 8.8.8.8, to sandboxes with an allow list, by which
            data can leave them. Only a list with `*.` in it needs that.
        audit: Where records of operations go.

    Raises:
        ConfigurationError: A value has no meaning.

    Example: `sandboxio.create(E2BConfig(template="my-template"))`
    """

    backend_name: ClassVar[str] = "e2b"

    template: str | None = None
    domain: str | None = None
    create_timeout: float = 60.0
    allow_dns: bool = False
    audit: AuditConfig = field(default_factory=AuditConfig)

    def __post_init__(self) -> None:
        if not 0 < self.create_timeout < float("inf"):
            raise _bad(f"create_timeout is {self.create_timeout}", "give a positive number of seconds")
        if self.domain is not None and not _DOMAIN.fullmatch(self.domain):
            raise _bad("domain is no domain name", "give a name such as e2b.example.org, without a scheme")

    def __repr__(self) -> str:
        shown = [
            f"{item.name}={value!r}"
            for item in fields(self)
            if item.name != "audit" and (value := getattr(self, item.name)) != item.default
        ]
        return f"E2BConfig({', '.join(shown)})"

    @property
    def loosened(self) -> tuple[str, ...]:
        """The settings that make a sandbox less confined than the defaults do."""
        return ("allow_dns=True",) if self.allow_dns else ()

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> Self:
        """The configuration that `e2b://TEMPLATE?name=value` means.

        Raises:
            ConfigurationError: A parameter is unknown or its value has no meaning.

        Example: `E2BConfig.from_dsn("my-template", {"domain": "e2b.example.org"})`
        """
        for name in params:
            if name != "domain":
                raise _bad(
                    f"the parameter {name[:40]!r} is not known in an e2b:// target",
                    "use domain or timeout; E2BConfig has all the others",
                )
        return cls(template=template, domain=params.get("domain"))


def _bad(what: str, fix: str) -> ConfigurationError:
    return ConfigurationError(f"E2BConfig: {what}", hint=fix)
