"""The same program on any backend: the target is the one line that differs.

Run it with `docker://`, `e2b://` (which needs E2B_API_KEY) or `fake://` as its argument.
"""

import asyncio
import sys

import sandboxio
from sandboxio import Capability

TARGET = sys.argv[1] if len(sys.argv) > 1 else "docker://"


async def main() -> None:
    """Ask for what is common; look at a flag for what is not."""
    async with sandboxio.create(TARGET, timeout=120) as sandbox:
        print(f"{sandbox.backend}, isolation {sandbox.isolation.value}")
        await sandbox.files.write("words.txt", "one two three\n")
        counted = await sandbox.run(["wc", "-w", "words.txt"])
        print("words:", counted.raise_for_status().stdout.split()[0])
        if Capability.STATEFUL_CODE in sandbox.capabilities:
            await sandbox.run_code("x = 41", context_id="session")
            remembered = await sandbox.run_code("print(x + 1)", context_id="session")
            print("a context remembers:", remembered.stdout.strip())
        else:
            print("a context remembers: not offered here")


if __name__ == "__main__":
    asyncio.run(main())
