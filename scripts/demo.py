"""Run `sandboxio demo` on a real Docker Engine, and bring one up first where that can be done.

As root on Debian or Ubuntu a missing engine is started by the project's own scripts, with an image that needs
no registry. Elsewhere the one missing command is printed. The fake backend never stands in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from engine_image import DEFAULT_IMAGE, OFFLINE_IMAGE, VARIABLE, chosen_image, engine_answers, engine_has

SCRIPTS = Path(__file__).resolve().parent


def say(text: str) -> None:
    """Print one line of progress at once, before what comes next prints its own."""
    print(f"demo: {text}", flush=True)


def missing_command() -> str:
    """Return the command that gives this machine an engine."""
    if sys.platform == "darwin":
        return "open -a Docker"
    if shutil.which("apt-get"):
        return "sudo make demo"
    return "sudo systemctl start docker"


def start_engine() -> bool:
    """Start an engine and make an image for it, as root on Debian or Ubuntu; elsewhere say what to do."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        say("no Docker Engine answers. Start one, then run this again:")
        print(f"    {missing_command()}")
        return False
    address = os.environ.get("DOCKER_HOST")
    if address:
        say(f"no Docker Engine answers at DOCKER_HOST={address}. Correct or unset it, then run this again")
        return False
    say("no Docker Engine answers; starting one from the system's packages (scripts/docker-engine.sh up)")
    subprocess.run([SCRIPTS / "docker-engine.sh", "up"], check=True)
    if not engine_has(DEFAULT_IMAGE):
        say(f"making the image {OFFLINE_IMAGE} without a registry (scripts/docker-image.sh)")
        subprocess.run([SCRIPTS / "docker-image.sh", OFFLINE_IMAGE], check=True)
    return True


def environment() -> dict[str, str]:
    """Return the demo's environment, with the offline image where only that one is there."""
    image = chosen_image()
    if image is None:
        return dict(os.environ)
    say(f"{DEFAULT_IMAGE} is not on this engine, so {image} is used. In your own shell:")
    say(f"    export {VARIABLE}={image}")
    return {**os.environ, VARIABLE: image}


def main(arguments: list[str]) -> int:
    """Make sure an engine is there, run the demo, return its exit code."""
    try:
        if not engine_answers() and not start_engine():
            return 1
    except subprocess.CalledProcessError as error:
        say(f"{Path(error.cmd[0]).name} failed; its last lines are above")
        return 1
    command = [sys.executable, "-m", "sandboxio", "demo", *arguments]
    return subprocess.run(command, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
