"""Images: what an image says of itself, and pulling one that is missing."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sandboxio.adapter.threads import BlockingCalls
from sandboxio.errors import ConfigurationError, CreationError
from sandboxio.logs import get_logger
from sandboxio_docker.address import Address
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError

__all__ = ["DEFAULT_IMAGE", "Image", "chosen_image", "find_image", "inspect_image"]

DEFAULT_IMAGE: Final = "python:3.12-slim"
_USUAL_PLACES: Final = ("/work", "/tmp", "/dev/shm")  # noqa: S108 -- inside the sandbox
_PULL_IDLE_SECONDS: Final = 120
_NAME_LIMIT: Final = 512
_PART: Final = r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*"
_NAME: Final = re.compile(
    rf"{_PART}(?::\d{{1,5}}(?=/))?(?:/{_PART})*(?::[\w][\w.-]{{0,127}})?(?:@{_PART}:[0-9a-fA-F]{{32,}})?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the engine.

    Attributes:
        id: Its content's id.
        name: What it was asked for as.
        user: Its `USER`, as written.
        volumes: The paths at which it declares volumes.
    """

    id: str
    name: str
    user: str
    volumes: tuple[str, ...]


def chosen_image(template: str | None, configured: str | None) -> str:
    """The image to use: what was asked for, configured, set in `SBX_DOCKER_IMAGE`, or the default.

    Raises:
        ConfigurationError: It cannot be the name of an image.
    """
    name = template or configured or os.environ.get("SBX_DOCKER_IMAGE") or DEFAULT_IMAGE
    if len(name) > _NAME_LIMIT or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name[:80]!r} is not the name of an image",
            hint="write it as [registry[:port]/]name[:tag] or name@sha256:…",
        )
    return name


async def inspect_image(engine: Engine, name: str) -> Image | None:
    """What the engine knows about an image, or `None` when it does not have it."""
    try:
        found = await engine.get(f"/images/{name}/json")
    except EngineError as exc:
        if exc.status == 404:
            return None
        if exc.status == 400:
            raise ConfigurationError(
                f"{name[:80]!r} is not the name of an image: {exc.message}",
                hint="write it as [registry[:port]/]name[:tag] or name@sha256:…",
            ) from exc
        raise
    config = found.members("Config")
    declared = sorted(path.rstrip("/") or "/" for path in config.members("Volumes"))
    if found.get("Os", "linux") != "linux":
        raise CreationError(f"the image {name} is for {found['Os']}, not for Linux", hint="use a Linux image")
    return Image(
        id=str(found["Id"]),
        name=name,
        user=str(config.get("User") or ""),
        volumes=tuple(path for path in declared if path not in _USUAL_PLACES),
    )


async def find_image(engine: Engine, threads: BlockingCalls, name: str) -> Image:
    """An image of the engine, pulled first if it is missing. Pulling can be cancelled.

    Raises:
        CreationError: It is not there and cannot be pulled.
    """
    image = await inspect_image(engine, name)
    if image is not None:
        return image
    stop = threading.Event()
    get_logger("sandboxio.docker").info("pulling the image %s", name)
    try:
        await threads.run(_pull, engine.transport.address, name, stop, abandon=True)
    finally:
        stop.set()
    image = await inspect_image(engine, name)
    if image is None:
        raise _unavailable(name, "it was pulled, but the engine does not have it")
    return image


def _pull(address: Address, name: str, stop: threading.Event) -> None:
    """Pull with docker-py, which knows where credentials for registries are kept."""
    import docker
    from docker.errors import DockerException
    from docker.utils import parse_repository_tag

    logger = get_logger("sandboxio.docker")
    repository, tag = parse_repository_tag(name)
    try:
        client = docker.APIClient(**address.sdk_arguments(), version="auto", timeout=_PULL_IDLE_SECONDS)
        try:
            for step in _steps(client, repository, tag or "latest"):
                if stop.is_set():
                    return
                if "error" in step:
                    raise _unavailable(name, str(step["error"]))
                logger.debug("%s: %s %s", name, step.get("status", ""), step.get("id", ""))
        finally:
            client.close()
    except (DockerException, OSError) as exc:  # requests' errors are OSErrors
        raise _unavailable(name, str(getattr(exc, "explanation", None) or exc)) from exc


def _steps(client: Any, repository: str, tag: str) -> Iterator[dict[str, Any]]:
    yield from client.pull(repository, tag=tag, stream=True, decode=True)


def _unavailable(name: str, reason: str) -> CreationError:
    return CreationError(
        f"the image {name} is not on the engine and cannot be pulled: {reason.strip()[:300]}",
        hint=f"run `docker pull {name}` to see why; to use an image that is on the engine, name it in "
        "SBX_DOCKER_IMAGE or template=; without a registry scripts/docker-image.sh makes one",
    )
