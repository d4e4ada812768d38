"""Bring a folder in, work on it in the sandbox, and take the outcome back out."""

import asyncio
import tempfile
from pathlib import Path

import sandboxio


async def main() -> None:
    """Upload, write, list, run a command on it, download. Transfers stream, so their size hardly matters."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "in").mkdir()
        (folder / "in" / "a.txt").write_text("pear\nfig\n")
        (folder / "in" / "b.txt").write_text("apple\n")

        async with sandboxio.create(timeout=60) as sandbox:
            await sandbox.files.upload(folder / "in", "fruit")
            await sandbox.files.write("fruit/c.txt", "quince\n")
            for entry in await sandbox.files.ls("fruit"):
                print(f"{entry.name}: {entry.size} bytes")

            await sandbox.files.mkdir("out")
            (await sandbox.run("cat fruit/*.txt > out/all.txt")).raise_for_status()
            await sandbox.files.download("out", folder / "out")

            try:
                await sandbox.files.read("out/missing.txt")
            except sandboxio.PathNotFound as error:
                print(error.code, "for a file that is not there")

        print("all:", (folder / "out" / "all.txt").read_text().split())


if __name__ == "__main__":
    asyncio.run(main())
