"""Run a command with an image that the local Docker Engine has: python scripts/engine_image.py COMMAND...

Where `SBX_DOCKER_IMAGE` is not set and the engine has only the image that `scripts/docker-image.sh` makes,
the command is given that one. Otherwise, or without an engine, it runs as it is.
"""

from __future__ import annotations

import os
import sys

import docker
from docker.errors import DockerException, ImageNotFound

DEFAULT_IMAGE = "python:3.12-slim"
OFFLINE_IMAGE = "sandboxio/python:bookworm"
VARIABLE = "SBX_DOCKER_IMAGE"


def engine_answers() -> bool:
    """Tell whether an engine answers where docker looks for one."""
    try:
        client = docker.from_env(timeout=10)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


def engine_has(image: str) -> bool:
    """Tell whether the engine has an image already."""
    client = docker.from_env(timeout=30)
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    finally:
        client.close()
    return True


def chosen_image() -> str | None:
    """Return the image to name in `SBX_DOCKER_IMAGE`, or `None` where nothing needs to be named."""
    if VARIABLE in os.environ or engine_has(DEFAULT_IMAGE) or not engine_has(OFFLINE_IMAGE):
        return None
    return OFFLINE_IMAGE


def main(command: list[str]) -> None:
    """Become the command."""
    image = chosen_image() if engine_answers() else None
    if image is not None:
        print(f"{DEFAULT_IMAGE} is not on this engine, so {VARIABLE}={image} is used", flush=True)
        os.environ[VARIABLE] = image
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
