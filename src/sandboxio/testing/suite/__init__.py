"""The contract in executable form. An adapter that passes it behaves like every other one.

A subclass makes its backend and supplies what only its author can: probes that look behind the
sandbox or make things go wrong. What is declared is tested, what is not declared is tested to be
refused, and a probe that is missing skips its tests visibly.

Example:
    class TestMyBackend(BackendContractSuite):
        def make_backend(self, audit: AuditConfig) -> Backend:
            return MyBackend(audit=audit)
"""

from sandboxio.testing.suite.archives import replaced_trees
from sandboxio.testing.suite.base import RecordingSink, SuiteBase
from sandboxio.testing.suite.cancellation import CancellationTests
from sandboxio.testing.suite.capabilities import CapabilityTests
from sandboxio.testing.suite.code import CodeTests
from sandboxio.testing.suite.commands import CommandProbes
from sandboxio.testing.suite.concurrency import ConcurrencyTests
from sandboxio.testing.suite.creation import CreationTests
from sandboxio.testing.suite.deadlines import DeadlineTests
from sandboxio.testing.suite.errors import ErrorTests
from sandboxio.testing.suite.execution import ExecutionTests
from sandboxio.testing.suite.files import FilesTests
from sandboxio.testing.suite.isolation import IsolationTests
from sandboxio.testing.suite.lifecycle import LifecycleTests
from sandboxio.testing.suite.network import NetworkTests
from sandboxio.testing.suite.observability import ObservabilityTests
from sandboxio.testing.suite.output import OutputTests
from sandboxio.testing.suite.ownership import OwnershipTests
from sandboxio.testing.suite.probes import BehaviourProbes, Canary
from sandboxio.testing.suite.resources import ResourceTests
from sandboxio.testing.suite.secrets import SecretTests
from sandboxio.testing.suite.streaming import StreamingTests
from sandboxio.testing.suite.transfers import TransferTests

__all__ = [
    "BackendContractSuite",
    "BehaviourProbes",
    "Canary",
    "CommandProbes",
    "RecordingSink",
    "SuiteBase",
    "replaced_trees",
]


class BackendContractSuite(
    LifecycleTests,
    CreationTests,
    OwnershipTests,
    ExecutionTests,
    DeadlineTests,
    CancellationTests,
    OutputTests,
    StreamingTests,
    ConcurrencyTests,
    CodeTests,
    FilesTests,
    TransferTests,
    NetworkTests,
    ResourceTests,
    CapabilityTests,
    IsolationTests,
    SecretTests,
    ObservabilityTests,
    ErrorTests,
):
    """Every row of the contract. Override `make_backend`, and as many probes as can be supplied."""
