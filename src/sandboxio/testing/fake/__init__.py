"""The fake backend: in memory, deterministic, with a virtual clock. It executes nothing on the host."""

from sandboxio.testing.fake.backend import ALL_CAPABILITIES, FakeBackend, FakeConfig
from sandboxio.testing.fake.clock import VirtualClock
from sandboxio.testing.fake.network import Denial, FakeServer
from sandboxio.testing.fake.scripted import FakeCall

__all__ = [
    "ALL_CAPABILITIES",
    "Denial",
    "FakeBackend",
    "FakeCall",
    "FakeConfig",
    "FakeServer",
    "VirtualClock",
]
