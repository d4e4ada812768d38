"""Read output while it is written, feed input, and see what a deadline does and what it leaves."""

import asyncio

import sandboxio


async def main() -> None:
    """Stream to the end, answer a running process, then let one run into its deadline."""
    async with sandboxio.create(timeout=60) as sandbox:
        async with sandbox.stream("for step in 1 2 3; do echo step $step; sleep 0.2; done") as process:
            async for chunk in process:
                print(f"{chunk.stream}: {chunk.data.decode()}", end="")
        print("exit code", process.returncode)

        async with sandbox.stream(["cat"], stdin=sandboxio.PIPE) as process:
            await process.write("typed while it runs\n")
            await process.close_stdin()
            async for chunk in process:
                print("echoed:", chunk.data.decode(), end="")

        try:
            await sandbox.run("echo a beginning; sleep 60; echo never", timeout=1)
        except sandboxio.ExecutionTimeout as error:
            print(f"{error.code}, and until then it wrote: {error.partial.stdout}", end="")

        after = await sandbox.run(["echo", "only that execution was ended; the sandbox lives on"])
        print(after.stdout, end="")


if __name__ == "__main__":
    asyncio.run(main())
