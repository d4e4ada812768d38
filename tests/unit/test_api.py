"""From a target to a sandbox."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import anyio
import pytest

import sandboxio
from sandboxio import (
    Backend,
    BackendNotFound,
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    IsolationTier,
    NetworkPolicy,
    OrphanedSandboxWarning,
    Resources,
)


@dataclass(frozen=True)
class RecordingConfig:
    backend_name: ClassVar[str] = "recording"
    template: str | None = None
    size: str = "small"

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> RecordingConfig:
        if unknown := set(params) - {"size"}:
            raise ConfigurationError(f"unknown parameter {min(unknown)}")
        return cls(template, **params)


class RecordingSandbox:
    """Only what `create` and `connect` touch, noting what happens to it."""

    def __init__(self, backend: RecordingBackend, *, owned: bool) -> None:
        self.backend = backend.name
        self.id = "sandbox-1"
        self.isolation = backend.given_isolation
        self._log = backend.log
        self._owned = owned
        self._kill = backend.kill
        self._enter = backend.enter

    async def kill(self) -> None:
        self._log.append("kill")
        await self._kill()

    async def __aenter__(self) -> Self:
        self._log.append("enter")
        await self._enter()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._log.append("exit")
        if self._owned:
            await self.kill()


class RecordingBackend:
    """Notes what it is asked for."""

    config_type = RecordingConfig
    made: ClassVar[list[RecordingBackend]] = []

    def __init__(self, config: RecordingConfig) -> None:
        self.config = config
        self.name = "recording"
        self.isolation = IsolationTier.CONTAINER
        self.given_isolation = IsolationTier.CONTAINER
        self.log: list[str] = []
        self.request: dict[str, Any] = {}
        self.made.append(self)

    async def kill(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def enter(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def create(self, **request: Any) -> RecordingSandbox:
        self.log.append("create")
        self.request = request
        await anyio.lowlevel.checkpoint()
        return RecordingSandbox(self, owned=True)

    async def connect(self, sandbox_id: str) -> RecordingSandbox:
        self.log.append(f"connect {sandbox_id}")
        await anyio.lowlevel.checkpoint()
        return RecordingSandbox(self, owned=False)


class VerifyingBackend(RecordingBackend):
    """Learns its tier from its provider."""

    verified = IsolationTier.GVISOR

    async def verify_isolation(self) -> IsolationTier:
        self.log.append("verify")
        return self.verified


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    RecordingBackend.made.clear()
    sandboxio.register("recording", f"{__name__}:RecordingBackend")
    yield
    RecordingBackend.made.clear()


def the_backend() -> RecordingBackend:
    (backend,) = RecordingBackend.made
    return backend


def ready_backend(kind: type[RecordingBackend] = RecordingBackend) -> tuple[RecordingBackend, Backend]:
    backend = kind(RecordingConfig())
    return backend, cast("Backend", backend)


async def test_a_dsn_becomes_a_request() -> None:
    await sandboxio.create("recording://img:1?timeout=60&size=big")
    backend = the_backend()
    assert backend.config == RecordingConfig("img:1", "big")
    assert backend.request == {
        "template": "img:1",
        "resources": Resources(),
        "network": NetworkPolicy(),
        "env": None,
        "secrets": None,
        "timeout": 60.0,
        "metadata": None,
    }


async def test_a_configuration_object_is_a_target() -> None:
    await sandboxio.create(RecordingConfig("img:2"))
    assert the_backend().request["template"] == "img:2"


async def test_a_backend_is_a_target() -> None:
    recording, backend = ready_backend()
    await sandboxio.create(backend, template="img:3")
    assert recording.request["template"] == "img:3"


async def test_all_keywords_reach_the_backend() -> None:
    resources, network = Resources(cpu=2), NetworkPolicy(egress="allow")
    await sandboxio.create(
        "recording://",
        template="img",
        resources=resources,
        network=network,
        env={"A": "1"},
        secrets={"B": "2"},
        timeout=5,
        metadata={"tenant_id": "t"},
    )
    assert the_backend().request == {
        "template": "img",
        "resources": resources,
        "network": network,
        "env": {"A": "1"},
        "secrets": {"B": "2"},
        "timeout": 5.0,
        "metadata": {"tenant_id": "t"},
    }


async def test_no_target_means_the_default_backend() -> None:
    sandboxio.register("docker", f"{__name__}:RecordingBackend")
    try:
        await sandboxio.create()
        assert the_backend().config == RecordingConfig()
    finally:
        from sandboxio.registry import _registry

        _registry._targets.pop("docker")
        _registry._classes.pop("docker")


async def test_the_default_lifetime_is_five_minutes() -> None:
    await sandboxio.create("recording://")
    assert the_backend().request["timeout"] == 300


@pytest.mark.parametrize("timeout", [None, 0, -1, float("nan"), float("inf"), True, "60", 10**400])
async def test_a_lifetime_is_a_positive_number(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        await sandboxio.create("recording://", timeout=timeout)
    assert RecordingBackend.made == []


@pytest.mark.parametrize(
    ("target", "keywords"),
    [
        ("recording://img:1", {"template": "img:2"}),
        (RecordingConfig("img:1"), {"template": "img:2"}),
        ("recording://?timeout=60", {"timeout": 61}),
    ],
)
async def test_two_values_for_one_thing_contradict(target: Any, keywords: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="both in the target and as a keyword"):
        await sandboxio.create(target, **keywords)


async def test_the_same_value_twice_is_fine() -> None:
    await sandboxio.create("recording://img?timeout=60", template="img", timeout=60)
    assert the_backend().request["timeout"] == 60


@pytest.mark.parametrize("timeout", [300, 300.0])
async def test_the_default_gives_way_to_the_target_also_when_a_wrapper_hands_it_on(timeout: float) -> None:
    await sandboxio.create("recording://?timeout=60", timeout=timeout)
    assert the_backend().request["timeout"] == 60


@pytest.mark.parametrize(
    "keywords",
    [
        {"network": "allow"},
        {"network": {"egress": "allow"}},
        {"resources": {"cpu": 2}},
        {"template": 3},
        {"require_isolation": "gvisor"},
    ],
)
async def test_an_argument_of_a_wrong_type_is_named(keywords: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(keywords))):
        await sandboxio.create("recording://", **keywords)
    assert RecordingBackend.made == []


@pytest.mark.parametrize("target", [3, b"recording://", object(), ["recording://"]])
async def test_anything_else_is_no_target(target: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"the target is {type(target).__name__}"):
        await sandboxio.create(target)


async def test_a_class_is_no_target_and_its_object_is_asked_for() -> None:
    for target in (RecordingBackend, RecordingConfig):
        with pytest.raises(ConfigurationError, match=f"the class {target.__name__}") as caught:
            await sandboxio.create(cast("Any", target))
        assert f"{target.__name__}(…)" in caught.value.hint


async def test_a_parameter_that_the_backend_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown parameter colour"):
        await sandboxio.create("recording://?colour=red")


async def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(BackendNotFound):
        await sandboxio.create("nobody-has-this-name://")


async def test_a_configuration_of_another_backend_is_refused() -> None:
    @dataclass(frozen=True)
    class StrangeConfig:
        backend_name: ClassVar[str] = "recording"

    with pytest.raises(ConfigurationError, match="configured by RecordingConfig, not by StrangeConfig"):
        await sandboxio.create(cast("Any", StrangeConfig()))


async def test_a_tier_is_checked_before_anything_is_provisioned() -> None:
    with pytest.raises(CapabilityNotSupported, match=r"tier CONTAINER.*asks for GVISOR") as caught:
        await sandboxio.create("recording://", require_isolation=IsolationTier.GVISOR)
    assert "GVISOR" in caught.value.hint
    assert the_backend().log == []


async def test_a_tier_that_is_reached_is_fine() -> None:
    await sandboxio.create("recording://", require_isolation=IsolationTier.CONTAINER)
    assert the_backend().log == ["create"]


async def test_the_provider_is_asked_where_it_knows_better() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    recording.given_isolation = IsolationTier.GVISOR
    await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert recording.log == ["verify", "create"]


async def test_the_provider_is_not_asked_when_nothing_is_required() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    await sandboxio.create(backend)
    assert recording.log == ["create"]


async def test_unknown_cannot_be_required() -> None:
    with pytest.raises(ConfigurationError, match="UNKNOWN"):
        await sandboxio.create("recording://", require_isolation=IsolationTier.UNKNOWN)
    assert RecordingBackend.made == []


async def test_a_sandbox_that_falls_short_is_ended() -> None:
    recording, backend = ready_backend(VerifyingBackend)
    with pytest.raises(CapabilityNotSupported, match="sandbox-1 gives the isolation tier CONTAINER"):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert recording.log == ["verify", "create", "kill"]


async def test_one_that_cannot_be_ended_is_told() -> None:
    recording, backend = ready_backend(VerifyingBackend)

    async def refuse() -> None:
        raise ConnectError("the provider refused")

    recording.kill = refuse  # type: ignore[method-assign]
    with (
        pytest.warns(OrphanedSandboxWarning, match=r"sandbox-1 may still run.*the provider refused"),
        pytest.raises(CapabilityNotSupported),
    ):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)


async def test_one_whose_end_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "0.05")
    recording, backend = ready_backend(VerifyingBackend)
    recording.kill = anyio.sleep_forever  # type: ignore[method-assign]
    with pytest.warns(OrphanedSandboxWarning, match="too long"), pytest.raises(CapabilityNotSupported):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)


async def test_one_that_fails_to_end_in_a_foreign_way_is_told() -> None:
    recording, backend = ready_backend(VerifyingBackend)

    async def break_down() -> None:
        raise ValueError("token=hunter2")

    recording.kill = break_down  # type: ignore[method-assign]
    with (
        pytest.warns(OrphanedSandboxWarning, match="ending it failed: ValueError") as warned,
        pytest.raises(CapabilityNotSupported),
    ):
        await sandboxio.create(backend, require_isolation=IsolationTier.GVISOR)
    assert "hunter2" not in str(warned[0].message)


async def test_a_created_sandbox_whose_context_cannot_be_entered_is_ended() -> None:
    recording, backend = ready_backend()

    async def refuse() -> None:
        raise ConnectError("no")

    recording.enter = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match="no"):
        async with sandboxio.create(backend):
            pass
    assert recording.log == ["create", "enter", "kill"]


async def test_a_connected_sandbox_whose_context_cannot_be_entered_is_left_alone() -> None:
    recording, backend = ready_backend()

    async def refuse() -> None:
        raise ConnectError("no")

    recording.enter = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match="no"):
        async with sandboxio.connect(backend, "abc"):
            pass
    assert recording.log == ["connect abc", "enter"]


async def test_a_sandbox_is_ended_when_entering_is_cancelled() -> None:
    recording, backend = ready_backend()
    recording.enter = anyio.sleep_forever  # type: ignore[method-assign]
    with anyio.move_on_after(0.05) as scope:
        async with sandboxio.create(backend):
            pass
    assert scope.cancelled_caught
    assert recording.log == ["create", "enter", "kill"]


@pytest.mark.parametrize(
    ("target", "part"), [("recording://img", "template"), ("recording://?timeout=5", "timeout")]
)
async def test_what_would_be_ignored_in_a_connection_is_refused(target: str, part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the target has a {part}"):
        await sandboxio.connect(target, "abc")
    assert the_backend().log == []


async def test_a_configuration_with_a_template_serves_connections_too() -> None:
    await sandboxio.connect(RecordingConfig("img"), "abc")
    assert the_backend().log == ["connect abc"]


def test_the_backend_of_a_target_is_made_without_a_sandbox() -> None:
    backend = cast("Any", sandboxio.backend_for("recording://img?size=big"))
    assert backend is the_backend()
    assert backend.config == RecordingConfig("img", "big")
    assert backend.log == []


def test_a_backend_is_its_own() -> None:
    _, backend = ready_backend()
    assert sandboxio.backend_for(backend) is backend


def test_a_backend_has_no_lifetime() -> None:
    with pytest.raises(ConfigurationError, match="the target has a timeout"):
        sandboxio.backend_for("recording://?timeout=5")


async def test_connecting_gives_a_handle_that_ends_nothing() -> None:
    async with sandboxio.connect("recording://", "abc") as sandbox:
        assert sandbox.id == "sandbox-1"
    assert the_backend().log == ["connect abc", "enter", "exit"]


async def test_a_connected_sandbox_that_falls_short_is_left_as_it_is() -> None:
    with pytest.raises(CapabilityNotSupported, match="asks for MICROVM"):
        await sandboxio.connect("recording://", "abc", require_isolation=IsolationTier.MICROVM)
    assert the_backend().log == ["connect abc", "enter", "exit"]


@pytest.mark.parametrize("sandbox_id", ["", None, 3])
async def test_an_id_is_text(sandbox_id: Any) -> None:
    with pytest.raises(ConfigurationError, match="sandbox id"):
        await sandboxio.connect("recording://", sandbox_id)


async def test_both_forms_of_a_context_mean_the_same() -> None:
    async with sandboxio.create("recording://") as first:
        pass
    async with await sandboxio.create("recording://") as second:
        pass
    assert type(first) is type(second)
    assert [backend.log for backend in RecordingBackend.made] == [["create", "enter", "exit", "kill"]] * 2


async def test_it_can_be_used_once() -> None:
    pending = sandboxio.create("recording://")
    await pending
    with pytest.raises(RuntimeError, match="already awaited"):
        await pending
    with pytest.raises(RuntimeError, match="already awaited"):
        async with pending:
            pass


async def test_a_context_that_was_not_entered_cannot_be_left() -> None:
    pending = sandboxio.create("recording://")
    with pytest.raises(RuntimeError, match="not entered"):
        await pending.__aexit__(None, None, None)
    pending.close()


def test_it_is_a_coroutine() -> None:
    pending = sandboxio.create("recording://")
    assert isinstance(pending, Coroutine)
    assert inspect.isawaitable(pending)
    assert asyncio.iscoroutine(pending)
    assert repr(pending) == "<PendingSandbox of create()>"
    pending.close()


@pytest.mark.parametrize("form", ["create", "connect"])
def test_one_that_is_never_used_warns_as_a_coroutine_does(form: str) -> None:
    arguments = ("recording://", "abc")[: 1 if form == "create" else 2]
    with pytest.warns(RuntimeWarning, match=f"coroutine '{form}' was never awaited"):
        getattr(sandboxio, form)(*arguments)


async def test_task_groups_of_anyio_take_it() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxio.create, "recording://")
        group.start_soon(sandboxio.create, "recording://")
    assert len(RecordingBackend.made) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_takes_it(anyio_backend: str) -> None:
    task = asyncio.create_task(sandboxio.create("recording://"), name="creating")
    gathered = await asyncio.gather(sandboxio.create("recording://"), sandboxio.create("recording://"))
    async with asyncio.TaskGroup() as group:
        grouped = group.create_task(sandboxio.create("recording://"))
    waited = await asyncio.wait_for(sandboxio.create("recording://"), 5)
    sandboxes = [await task, *gathered, grouped.result(), waited]
    assert [sandbox.id for sandbox in sandboxes] == ["sandbox-1"] * 5


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trio_takes_it(anyio_backend: str) -> None:
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sandboxio.create, "recording://")
    assert len(RecordingBackend.made) == 1


def test_asyncio_run_takes_it() -> None:
    assert asyncio.run(cast("Any", sandboxio.create("recording://"))).id == "sandbox-1"


def test_an_exception_can_be_thrown_in() -> None:
    pending = sandboxio.create("recording://")
    with pytest.raises(KeyError):
        pending.throw(KeyError("stop"))


@pytest.mark.parametrize("function", [sandboxio.create, sandboxio.create_sync])
def test_the_signature_shows_the_default(function: Any) -> None:
    assert "timeout: 'float' = 300," in str(inspect.signature(function))


async def test_the_fake_is_created_by_its_dsn() -> None:
    async with sandboxio.create("fake://", metadata={"tenant_id": "acme"}) as sandbox:
        assert (sandbox.backend, sandbox.metadata["tenant_id"]) == ("fake", "acme")
        assert (await sandbox.run(["echo", "hello"])).stdout == "hello\n"
    with pytest.raises(sandboxio.SandboxGone):
        await sandbox.run(["echo", "hello"])
