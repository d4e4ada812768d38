"""The synchronous face of the library, for scripts and for frameworks without a loop.

Each sandbox has an event loop in a thread of its own, so N synchronous sandboxes are N threads;
code that drives many is better asynchronous. Nothing is implemented twice: every call is handed to
the asynchronous object and waited for. Errors come through as they are.
"""

from sandboxio.sync.api import connect_sync, create_sync
from sandboxio.sync.files import SyncFileSystem
from sandboxio.sync.process import SyncProcess
from sandboxio.sync.sandbox import SyncSandbox

__all__ = ["SyncFileSystem", "SyncProcess", "SyncSandbox", "connect_sync", "create_sync"]
