"""What code in a sandbox can reach: nothing, unless the program says otherwise.

Nothing is sent anywhere: the one attempt to connect is refused inside the sandbox.
"""

import asyncio

import sandboxio
from sandboxio import NetworkPolicy

REACH_OUT = """
import socket
try:
    socket.create_connection(("1.1.1.1", 443), timeout=3).close()
    print("reached")
except OSError as error:
    print("denied:", error)
"""


async def main() -> None:
    """Try to leave a sandbox with the defaults, then ask for a list of hosts."""
    async with sandboxio.create(timeout=60) as sandbox:
        result = await sandbox.run_code(REACH_OUT, timeout=20)
        print("by default:", result.raise_for_status().stdout, end="")

    # A list of hosts is enforced, or refused before anything is created. It is never taken and ignored.
    listed = NetworkPolicy(allow=("example.org", "*.example.net"))
    try:
        async with sandboxio.create(network=listed, timeout=60) as sandbox:
            result = await sandbox.run_code(REACH_OUT, timeout=20)
            print("with a list:", result.raise_for_status().stdout, end="")
    except sandboxio.CapabilityNotSupported as error:
        print(f"with a list: refused, {error.code}")
        print("the fix:", error.hint)


if __name__ == "__main__":
    asyncio.run(main())
