"""How sandboxes come to be, and that nothing is left when they do not."""

from __future__ import annotations

import asyncio
import warnings
from uuid import uuid4

import anyio
import pytest

from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.provision import Launched, attach, provision
from sandboxio.audit import AuditConfig
from sandboxio.errors import (
    AuditSinkError,
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    CreateTimeout,
    CreationError,
    OrphanedSandboxWarning,
    UnverifiedIsolationWarning,
)
from sandboxio.models import Capability, IsolationTier, Resources
from sandboxio.network import NetworkPolicy


class ScriptedProvisioner:
    name = "scripted"
    create_timeout = 5.0

    def __init__(self, driver, *, capabilities=Capability.NETWORK_POLICY, audit=None, steps=3):
        self.capabilities = capabilities
        self.audit = audit or AuditConfig()
        self.isolation = IsolationTier.CONTAINER
        self.driver = driver
        self.steps = steps
        self.existing: set[str] = set()
        self.prepared = 0
        self.launch_error = None
        self.discard_error = None

    async def prepare(self, request):
        self.prepared += 1
        for _ in range(self.steps):
            await anyio.sleep(0)

    async def launch(self, request, prepared):
        self.request = request
        await anyio.sleep(0)
        self.existing.add(request.creation_id)
        for _ in range(self.steps):
            await anyio.sleep(0)
        if self.launch_error:
            raise self.launch_error
        return Launched("id", self.driver, self.capabilities, self.isolation, Lifetime(60), request.metadata)

    async def discard(self, request):
        if self.discard_error:
            raise self.discard_error
        await anyio.sleep(0)
        self.existing.discard(request.creation_id)

    async def find(self, sandbox_id):
        return Launched(sandbox_id, self.driver, self.capabilities, self.isolation, Lifetime(60), {})

    def translate(self, exc):
        return CreationError("translated") if isinstance(exc, KeyError) else None


@pytest.fixture
def make(make_sandbox):
    return lambda **options: ScriptedProvisioner(make_sandbox()[1], **options)


async def create(provisioner, **changes):
    arguments = {
        "template": None,
        "resources": None,
        "network": None,
        "env": None,
        "secrets": None,
        "timeout": 60,
        "metadata": None,
    }
    return await provision(provisioner, **{**arguments, **changes})


async def test_a_request_carries_labels_by_which_it_can_be_found(make):
    provisioner = make()
    await create(provisioner, metadata={"team": "blue"})
    labels = provisioner.request.labels
    assert labels["team"] == "blue"
    assert labels["sandboxio.managed"] == "true"
    assert labels["sandboxio.creation"] in provisioner.existing


async def test_secrets_are_in_no_repr_of_the_request(make):
    provisioner = make()
    await create(provisioner, secrets={"A": "s3cr3t"}, env={"B": "value"})
    assert "s3cr3t" not in repr(provisioner.request)
    assert "value" not in repr(provisioner.request)


async def test_cancelled_at_every_await_nothing_is_left(make):
    completed = False
    for stop_after in range(30):
        provisioner = make()
        with anyio.CancelScope() as scope:

            async def watch(scope=scope, count=stop_after):
                for _ in range(count):
                    await anyio.sleep(0)
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                await create(provisioner)
                completed = True
                group.cancel_scope.cancel()
        if completed:
            break
        assert provisioner.existing == set()
    assert completed
    assert stop_after > 3


async def test_a_launch_that_takes_too_long_is_undone(make):
    provisioner = make()
    provisioner.create_timeout = 0.05
    provisioner.steps = 10**9
    provisioner.prepare = lambda request: anyio.sleep(0)
    with pytest.raises(CreateTimeout):
        await create(provisioner)
    assert provisioner.existing == set()


async def test_a_failed_launch_is_undone_and_its_error_translated(make):
    provisioner = make()
    provisioner.launch_error = KeyError("x")
    with pytest.raises(CreationError, match="translated"):
        await create(provisioner)
    assert provisioner.existing == set()


async def test_an_unknown_failure_is_a_connect_error_with_its_cause(make):
    provisioner = make()
    provisioner.launch_error = OSError("reset")
    with pytest.raises(ConnectError) as caught:
        await create(provisioner)
    assert isinstance(caught.value.__cause__, OSError)


async def test_what_cannot_be_undone_is_told_with_its_label(make):
    provisioner = make()
    provisioner.launch_error = KeyError("x")
    provisioner.discard_error = RuntimeError("no")
    with pytest.warns(OrphanedSandboxWarning, match=r"sandboxio\.creation="), pytest.raises(CreationError):
        await create(provisioner)


async def test_a_sink_that_must_not_fail_takes_the_new_sandbox_with_it(make):
    class Broken:
        async def emit(self, event):
            raise OSError("disk full")

    provisioner = make(audit=AuditConfig(sinks=(Broken(),), on_sink_failure="fail"))
    with pytest.raises(AuditSinkError):
        await create(provisioner)
    assert provisioner.existing == set()


@pytest.mark.parametrize(
    "changes",
    [
        {"network": NetworkPolicy(allow=("example.org",))},
        {"network": NetworkPolicy(egress="learn")},
        {"network": NetworkPolicy(ingress_ports=(80,))},
        {"resources": Resources(gpu="a100")},
    ],
)
async def test_what_is_not_declared_is_refused_before_anything_is_prepared(make, changes):
    provisioner = make()
    with pytest.raises(CapabilityNotSupported):
        await create(provisioner, **changes)
    assert provisioner.prepared == 0


async def test_a_backend_without_network_policy_creates_nothing_at_all(make):
    provisioner = make(capabilities=Capability.RUN_COMMAND)
    with pytest.raises(CapabilityNotSupported, match="NETWORK_POLICY"):
        await create(provisioner)
    assert provisioner.prepared == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": None},
        {"timeout": True},
        {"template": ""},
        {"template": "a\nb"},
        {"template": "a\x1b[31m"},
        {"template": "a\0"},
        {"template": "\ud800"},
        {"template": 7},
        {"env": {"A=B": "x"}},
        {"env": {"": "x"}},
        {"env": {"A": "x\0"}},
        {"secrets": {"A": "\ud800"}},
        {"metadata": {"sandboxio.managed": "false"}},
        {"metadata": {"a": 1}},
    ],
)
async def test_a_malformed_request_is_refused_before_anything_is_prepared(make, changes):
    provisioner = make()
    with pytest.raises(ConfigurationError):
        await create(provisioner, **changes)
    assert provisioner.prepared == 0


async def test_a_sink_that_must_not_fail_leaves_no_connected_handle_open(make):
    class Broken:
        async def emit(self, event):
            raise OSError("disk full")

    provisioner = make(audit=AuditConfig(sinks=(Broken(),), on_sink_failure="fail"))
    with pytest.raises(AuditSinkError):
        await attach(provisioner, "abc")
    assert provisioner.driver.closed == 1
    assert provisioner.driver.destroyed == 0


@pytest.mark.parametrize("variable", ["SBX_TEARDOWN_GRACE", "SBX_AUDIT_TIMEOUT"])
async def test_a_malformed_time_in_the_environment_is_refused_at_creation(make, monkeypatch, variable):
    monkeypatch.setenv(variable, "abc")
    provisioner = make()
    with pytest.raises(ConfigurationError, match=variable):
        await create(provisioner)
    with pytest.raises(ConfigurationError, match=variable):
        await attach(provisioner, "abc")
    assert provisioner.prepared == 0


async def test_an_adapter_that_declares_more_than_it_has_is_refused(make):
    provisioner = make(capabilities=Capability.NETWORK_POLICY | Capability.FILESYSTEM)
    with pytest.raises(CreationError, match="without the ports"):
        await create(provisioner)
    assert provisioner.existing == set()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_native_cancellations_leave_nothing_either(make):
    for first in range(12):
        provisioner = make()
        task = asyncio.create_task(create(provisioner))
        for _ in range(first):
            await asyncio.sleep(0)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        results = await asyncio.gather(task, return_exceptions=True)
        if isinstance(results[0], BaseException):
            assert provisioner.existing == set(), first


async def test_an_unverified_tier_warns_once_a_backend(make):
    provisioner = make()
    provisioner.name = f"unverified-{uuid4().hex}"
    provisioner.isolation = IsolationTier.UNKNOWN
    with pytest.warns(UnverifiedIsolationWarning):
        await create(provisioner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await create(provisioner)


async def test_a_connected_sandbox_is_not_owned(make):
    provisioner = make()
    async with await attach(provisioner, "abc") as sandbox:
        assert sandbox.id == "abc"
    assert provisioner.driver.destroyed == 0
