"""Run a piece of code in a sandbox on the local Docker engine, and show what came of it."""

import asyncio

import sandboxio

CODE = """
import platform
print("hello from", platform.system(), "with Python", platform.python_version())
"""


async def main() -> None:
    """Create a sandbox, run the code, print the result; leaving the block ends the sandbox."""
    async with sandboxio.create(timeout=60) as sandbox:
        result = await sandbox.run_code(CODE, timeout=10)
        print(result.raise_for_status().stdout, end="")
        print(f"exit code {result.exit_code}, isolation {sandbox.isolation.value}")


if __name__ == "__main__":
    asyncio.run(main())
