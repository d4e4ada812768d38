"""Many pieces of code at once, each in a sandbox of its own, and only so many at a time."""

import asyncio
import time

import sandboxio

TASKS = 8
AT_ONCE = 4


async def square(number: int, places: asyncio.Semaphore) -> int:
    """Compute in a sandbox of its own; the label says later whose it was."""
    async with places, sandboxio.create(timeout=60, metadata={"session_id": f"task-{number}"}) as sandbox:
        result = await sandbox.run_code(f"print({number} ** 2)", timeout=20)
        return int(result.raise_for_status().stdout)


async def main() -> None:
    """Run them all. If one fails, the group cancels the others, and every sandbox is ended."""
    started = time.perf_counter()
    places = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(square(number, places)) for number in range(TASKS)]
    print("squares:", [task.result() for task in tasks])
    print(f"{TASKS} sandboxes, {AT_ONCE} at a time, in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
