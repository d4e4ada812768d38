"""What can be set for the Docker backend, and which settings loosen the sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Self

from sandboxio.audit import AuditConfig
from sandboxio.errors import ConfigurationError

__all__ = ["DockerConfig"]

_CAPABILITY: Final = re.compile(r"[A-Z][A-Z_]*", re.ASCII)
_USER: Final = re.compile(r"[0-9]{1,10}(?::[0-9]{1,10})?", re.ASCII)
_URL_PASSWORD: Final = re.compile(r"(?<=://)[^/?#\s:]*:[^/?#\s]*@")
_HIGHEST_PIDS: Final = 4_000_000


@dataclass(frozen=True, slots=True, repr=False)
class DockerConfig:
    """The configuration of the Docker backend. The defaults are the hardened ones.

    Attributes:
        template: The image, with a tag or digest; `None` for `SBX_DOCKER_IMAGE` or `python:3.12-slim`.
        base_url: The engine's address; `None` finds it as the `docker` command does.
        context: The docker context to use instead.
        runtime: The OCI runtime, such as `runsc`; `None` for the engine's default.
        create_timeout: Seconds that creating and starting a container may take.
        pids_limit: The cap on processes and threads in a sandbox.
        user: `uid` or `uid:gid` to run as; `None` for the image's user, or 65532 if that is root.
        read_only_root: `False` lets the sandbox write outside its sized folders, onto the engine's
            disk, where nothing caps it.
        capabilities: Linux capabilities to give back, such as `("NET_BIND_SERVICE",)`.
        no_new_privileges: `False` lets set-uid programs gain privileges.
        seccomp: The JSON text of a seccomp profile in place of the engine's default one.
        audit: Where records of operations go.

    Raises:
        ConfigurationError: A value has no meaning, or would switch a protection off altogether.

    Example: `sandboxio.create(DockerConfig(runtime="runsc"))`
    """

    backend_name: ClassVar[str] = "docker"

    template: str | None = None
    base_url: str | None = None
    context: str | None = None
    runtime: str | None = None
    create_timeout: float = 60.0
    pids_limit: int = 256
    user: str | None = None
    read_only_root: bool = True
    capabilities: tuple[str, ...] = ()
    no_new_privileges: bool = True
    seccomp: str | None = None
    audit: AuditConfig = field(default_factory=AuditConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", tuple(self.capabilities))
        if self.base_url is not None and self.context is not None:
            raise _bad("base_url and context are both given", "give one of them")
        if not 0 < self.create_timeout < float("inf"):
            raise _bad(f"create_timeout is {self.create_timeout}", "give a positive number of seconds")
        if isinstance(self.pids_limit, bool) or not 1 <= self.pids_limit <= _HIGHEST_PIDS:
            raise _bad(f"pids_limit is {self.pids_limit}", "raise the cap instead of removing it")
        if self.user is not None and not _USER.fullmatch(self.user):
            raise _bad(f"user is {self.user[:40]!r}", "give numbers: uid or uid:gid")
        for name in self.capabilities:
            if not _CAPABILITY.fullmatch(name) or name == "ALL":
                raise _bad(
                    f"capabilities holds {name[:40]!r}", 'name single ones, such as "NET_BIND_SERVICE"'
                )
        if self.seccomp is not None and not self.seccomp.lstrip().startswith("{"):
            raise _bad("seccomp is no profile", "give a profile's JSON text; seccomp cannot be switched off")

    def __repr__(self) -> str:
        shown = [
            f"{item.name}={_without_password(value)!r}"
            for item in fields(self)
            if item.name not in ("seccomp", "audit") and (value := getattr(self, item.name)) != item.default
        ]
        if self.seccomp is not None:
            shown.append("seccomp=<custom>")
        return f"DockerConfig({', '.join(shown)})"

    @property
    def loosened(self) -> tuple[str, ...]:
        """The settings that make a sandbox less confined than the defaults do."""
        found: list[str] = []
        if self.user is not None and int(self.user.partition(":")[0]) == 0:
            found.append(f"user={self.user}")
        if not self.read_only_root:
            found.append("read_only_root=False")
        if self.capabilities:
            found.append(f"capabilities={','.join(self.capabilities)}")
        if not self.no_new_privileges:
            found.append("no_new_privileges=False")
        if self.seccomp is not None:
            found.append("seccomp=<custom>")
        return tuple(found)

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> Self:
        """The configuration that `docker://TEMPLATE?name=value` means.

        A DSN can choose an engine and a runtime and set the cap on processes; what loosens a
        sandbox takes a `DockerConfig`, where a reader of the program sees it.

        Raises:
            ConfigurationError: A parameter is unknown or its value has no meaning.

        Example: `DockerConfig.from_dsn("alpine:3.20", {"runtime": "runsc"})`
        """
        values: dict[str, Any] = {}
        for name, text in params.items():
            if name in ("runtime", "context", "base_url"):
                values[name] = text
            elif name == "pids_limit" and text.isascii() and text.isdecimal() and len(text) < 10:
                values[name] = int(text)
            elif name == "pids_limit":
                raise _bad("pids_limit is no whole number", "write it as pids_limit=512")
            else:
                raise _bad(
                    f"the parameter {name[:40]!r} is not known in a docker:// target",
                    "use runtime, context, base_url, pids_limit or timeout; DockerConfig has all the others",
                )
        return cls(template=template, **values)


def _bad(what: str, fix: str) -> ConfigurationError:
    return ConfigurationError(f"DockerConfig: {what}", hint=fix)


def _without_password(value: object) -> object:
    return _URL_PASSWORD.sub("", value) if isinstance(value, str) else value
