"""`scripts/check_leaks.py` sees what a run left on the engine and among the processes, and fails for it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_leaks.py"


def check_leaks(
    *arguments: str, path: Path | None = None, wait: str = "0"
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, str(SCRIPT), "--wait", wait, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def stub_docker(folder: Path, script: str) -> Path:
    """Put a `docker` command into a folder that answers listings as told."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def test_a_clean_engine_passes(tmp_path: Path) -> None:
    done = check_leaks(path=stub_docker(tmp_path, "exit 0"))
    assert (done.returncode, done.stdout) == (0, "0 leaks under sandboxio.managed=true\n")


@pytest.mark.parametrize(
    ("noun", "kind"), [("ps", "container"), ("volume", "volume"), ("network", "network")]
)
def test_each_kind_of_leak_is_found(noun: str, kind: str, tmp_path: Path) -> None:
    done = check_leaks(path=stub_docker(tmp_path, f'[ "$1" = {noun} ] && echo 3f2a91\nexit 0'))
    assert done.returncode == 1
    assert f"leaked {kind} 3f2a91\n" in done.stdout


def test_only_what_carries_the_label_counts(tmp_path: Path) -> None:
    stub = stub_docker(tmp_path, 'case "$*" in *label=sandboxio.managed=true*) ;; *) echo other ;; esac')
    assert check_leaks(path=stub).returncode == 0


def test_a_removal_under_way_is_waited_for(tmp_path: Path) -> None:
    stub = stub_docker(
        tmp_path, f'[ "$1" = ps ] || exit 0\n[ -e {tmp_path}/seen ] || echo 3f2a91\n: > {tmp_path}/seen'
    )
    assert check_leaks(path=stub, wait="30").returncode == 0


def test_an_engine_that_does_not_answer_is_no_clean_engine(tmp_path: Path) -> None:
    done = check_leaks(path=stub_docker(tmp_path, "echo 'no daemon' >&2; exit 1"))
    assert done.returncode == 2
    assert "no daemon" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_process_that_outlived_its_parent_is_found(tmp_path: Path) -> None:
    marker = "sandboxio_docker"
    with subprocess.Popen([sys.executable, "-c", "input()", marker], stdin=subprocess.PIPE) as process:
        done = check_leaks("--processes", path=stub_docker(tmp_path, "exit 0"))
        process.communicate(b"\n", timeout=10)
    assert done.returncode == 1
    assert f"leaked process {process.pid}:" in done.stdout


@pytest.fixture
def planted_label() -> Iterator[str]:
    """The label of a volume that was really left on the engine."""
    label = f"sandboxio.leak-gate={uuid.uuid4().hex}"
    command = ["docker", "volume", "create", "--label", label]
    volume = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    yield label
    subprocess.run(["docker", "volume", "rm", volume], capture_output=True, timeout=60, check=True)


@pytest.fixture
def leaked_container() -> Iterator[tuple[str, str]]:
    """The label and id of a container that was really left on the engine."""
    import io
    import tarfile

    import docker

    label, value = "sandboxio.leak-gate", uuid.uuid4().hex
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    client = docker.from_env()
    image = f"sandboxio-leak-gate:{value}"
    client.api.import_image_from_data(archive.getvalue(), repository="sandboxio-leak-gate", tag=value)
    container = client.containers.create(image, command=["/empty"], labels={label: value})
    yield f"{label}={value}", str(container.id)
    container.remove(force=True)
    client.images.remove(image)
    client.close()


@pytest.mark.docker
def test_a_container_left_on_a_real_engine_is_found(leaked_container: tuple[str, str]) -> None:
    label, container = leaked_container
    done = check_leaks("--label", label)
    assert done.returncode == 1
    assert f"leaked container {container}\n" in done.stdout


@pytest.mark.docker
def test_a_volume_left_on_a_real_engine_is_found(planted_label: str) -> None:
    assert check_leaks("--label", planted_label).returncode == 1


@pytest.mark.docker
def test_a_real_engine_without_the_label_is_clean() -> None:
    assert check_leaks("--label", f"sandboxio.leak-gate={uuid.uuid4().hex}").returncode == 0
