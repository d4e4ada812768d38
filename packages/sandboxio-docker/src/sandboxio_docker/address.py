"""Where the engine is: the same answer as docker-py's and the `docker` command's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from sandboxio.errors import ConfigurationError

__all__ = ["DEFAULT_SOCKET", "Address", "TLSFiles", "resolve_address", "simple_address"]

DEFAULT_SOCKET: Final = "/var/run/docker.sock"
_VARIABLES: Final = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """The files of a TLS connection.

    Attributes:
        ca: The authority's certificate, or `None` for the system's own.
        cert: This client's certificate, or `None`.
        key: Its key, or `None`.
        verify: Whether the engine's certificate is checked.
    """

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an engine.

    Attributes:
        scheme: How it is reached.
        target: A socket's or pipe's path, or a host.
        port: A TCP port; 0 where there is none.
        user: The user for ssh, if one is named.
        tls: The TLS files, or `None` for plain bytes.
    """

    scheme: Literal["unix", "tcp", "ssh", "npipe"]
    target: str
    port: int = 0
    user: str | None = None
    tls: TLSFiles | None = None

    @property
    def url(self) -> str:
        """The address as docker-py takes it in `base_url`."""
        if self.scheme in ("unix", "npipe"):
            return f"{self.scheme}://{self.target}"
        host = f"[{self.target}]" if ":" in self.target else self.target
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{user}{host}{port}"

    def sdk_arguments(self) -> dict[str, Any]:
        """Arguments with which docker-py's client reaches the same engine. Imports docker-py."""
        arguments: dict[str, Any] = {"base_url": self.url}
        if self.scheme == "ssh":
            arguments["use_ssh_client"] = True
        if self.tls is not None:
            from docker.tls import TLSConfig

            pair = (self.tls.cert, self.tls.key) if self.tls.cert and self.tls.key else None
            arguments["tls"] = TLSConfig(client_cert=pair, ca_cert=self.tls.ca, verify=self.tls.verify)
        return arguments


def simple_address(environment: Mapping[str, str]) -> Address | None:
    """The default socket, when nothing points elsewhere; `None` when docker-py has to be asked.

    It exists because importing docker-py costs more than creating a small sandbox's plan.
    """
    if sys.platform == "win32" or any(environment.get(name) for name in _VARIABLES):
        return None
    folder = environment.get("DOCKER_CONFIG") or str(Path("~/.docker").expanduser())
    try:
        text = (Path(folder) / "config.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return Address("unix", DEFAULT_SOCKET)
    except OSError:
        return None
    try:
        config: Any = json.loads(text)
    except ValueError:
        return None
    try:
        context = config.get("currentContext") or "default"
    except AttributeError:
        return None
    return Address("unix", DEFAULT_SOCKET) if context == "default" else None


def resolve_address(*, base_url: str | None = None, context: str | None = None) -> Address:
    """Find the engine as docker-py does. Blocking: it may import docker-py and read files.

    Args:
        base_url: Overrides `DOCKER_HOST` and any context.
        context: The name of a docker context; overrides `DOCKER_HOST`.

    Raises:
        ConfigurationError: The address is malformed, or the context does not exist.
    """
    environment = dict(os.environ)
    if base_url is not None:
        environment["DOCKER_HOST"] = base_url
    elif context is not None:
        environment.pop("DOCKER_HOST", None)
        environment["DOCKER_CONTEXT"] = context
    simple = simple_address(environment)
    return simple if simple is not None else _ask_sdk(environment)


def _ask_sdk(environment: dict[str, str]) -> Address:
    from docker.constants import IS_WINDOWS_PLATFORM
    from docker.context import ContextAPI
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env, parse_host

    try:
        found: dict[str, Any] = dict(kwargs_from_env(environment=environment))
        if "base_url" not in found:
            _require_context(ContextAPI, environment.get("DOCKER_CONTEXT"))
            for name, value in ContextAPI.kwargs_from_context(environment=environment).items():
                found.setdefault(name, value)
        config = found.get("tls")
        host = str(parse_host(found.get("base_url"), IS_WINDOWS_PLATFORM, tls=bool(config)))
    except (DockerException, ValueError) as exc:
        raise ConfigurationError(
            f"the address of the Docker engine cannot be resolved: {exc}",
            hint="correct DOCKER_HOST (unix://…, tcp://host:port, ssh://user@host), DOCKER_CERT_PATH or "
            "DOCKER_CONTEXT; `docker context ls` shows what there is",
        ) from None  # its text may hold a password, which a traceback would show
    return _parsed(host, _files(config) if config else None)


def _require_context(api: Any, name: str | None) -> None:
    """docker-py takes the default engine when a context is missing; a wrong engine is worse than none."""
    if name and api.get_context(name) is None:
        raise ConfigurationError(
            f"there is no docker context named {name!r}", hint="`docker context ls` shows what there is"
        )


def _files(config: Any) -> TLSFiles:
    cert, key = config.cert or (None, None)
    return TLSFiles(ca=config.ca_cert, cert=cert, key=key, verify=bool(config.verify))


def _parsed(host: str, tls: TLSFiles | None) -> Address:
    scheme, _, rest = host.partition("://")
    if scheme == "http+unix":
        return Address("unix", rest)
    if scheme == "npipe":
        return Address("npipe", rest)
    parts = urlsplit(host)
    target, port = parts.hostname or "127.0.0.1", parts.port or 0
    if scheme == "ssh":
        return Address("ssh", target, port, user=parts.username)
    return Address("tcp", target, port, tls=(tls or TLSFiles()) if scheme == "https" else None)
