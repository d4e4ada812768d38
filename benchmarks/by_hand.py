"""What a careful user writes with docker-py alone: the same hardening, volumes and caps."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
from docker.types import DriverConfig, LogConfig, Mount

IMAGE = os.environ.get("SBX_DOCKER_IMAGE", "python:3.12-slim")
UID = 65532
MIB = 1024 * 1024
CHUNK = 2 * MIB


def _volume(target: str, size_mb: int) -> Mount:
    options = f"size={size_mb}m,uid={UID},gid={UID},mode=0700"
    driver = DriverConfig("local", {"type": "tmpfs", "device": "tmpfs", "o": options})
    return Mount(target, None, type="volume", driver_config=driver)


class HandMade:
    """One hardened container."""

    def __init__(self, *, memory_mb: int = 1024, disk_mb: int = 512, extra_memory_mb: int = 0) -> None:
        self.api = docker.from_env().api
        scratch = min(disk_mb // 8, 64)
        limit = (memory_mb + extra_memory_mb) * MIB
        host = self.api.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=256,
            mem_limit=limit,
            memswap_limit=limit,
            nano_cpus=10**9,
            read_only=True,
            log_config=LogConfig(type="none"),
            auto_remove=True,
            shm_size=scratch * MIB,
            mounts=[_volume("/work", disk_mb - 2 * scratch), _volume("/tmp", scratch)],
        )
        self.id = self.api.create_container(
            IMAGE,
            ["sleep", "600"],
            user=f"{UID}:{UID}",
            working_dir="/work",
            environment={"HOME": "/work"},
            labels={"sandboxio.managed": "true"},
            host_config=host,
        )["Id"]
        self.api.start(self.id)

    def run(self, argv: list[str]) -> tuple[bytes, int]:
        execution = self.api.exec_create(self.id, argv)["Id"]
        output, _ = self.api.exec_start(execution, demux=True)
        return output or b"", self.api.exec_inspect(execution)["ExitCode"]

    def stream(self, argv: list[str]) -> int:
        execution = self.api.exec_create(self.id, argv)["Id"]
        return sum(len(out or b"") for out, _ in self.api.exec_start(execution, stream=True, demux=True))

    def upload(self, local: Path, name: str) -> None:
        def archive() -> Iterator[bytes]:
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid = local.stat().st_size, UID, UID
            yield info.tobuf()
            with local.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
            yield b"\0" * (-info.size % 512 + 1024)

        self.api.put_archive(self.id, "/work", archive())

    def download(self, name: str, local: Path) -> None:
        chunks, _ = self.api.get_archive(self.id, f"/work/{name}", chunk_size=CHUNK)
        buffer = b""
        left: int | None = None
        with local.open("wb") as file:
            for chunk in chunks:
                if left is None:
                    buffer += chunk
                    if len(buffer) < 512:
                        continue
                    left = tarfile.TarInfo.frombuf(buffer[:512], "utf-8", "strict").size
                    chunk = buffer[512:]
                file.write(chunk[:left])
                left -= min(left, len(chunk))

    def write(self, name: str, data: bytes) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid = len(data), UID, UID
            tar.addfile(info, io.BytesIO(data))
        archive.seek(0)
        self.api.put_archive(self.id, "/work", archive)

    def read(self, name: str) -> bytes:
        chunks, _ = self.api.get_archive(self.id, f"/work/{name}", chunk_size=CHUNK)
        archive = io.BytesIO(b"".join(chunks))
        with tarfile.open(fileobj=archive) as tar:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

    def close(self) -> None:
        self.api.remove_container(self.id, force=True, v=True)
