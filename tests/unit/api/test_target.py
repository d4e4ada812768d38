"""What a target can be, and which backend it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest

import sandboxio
from sandboxio import BackendNotFound, ConfigurationError, NetworkPolicy, Resources, registry

from .recording import RecordingBackend, RecordingConfig, ready_backend, the_backend


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


async def test_no_target_means_the_default_backend() -> None:
    sandboxio.register("docker", f"{RecordingBackend.__module__}:RecordingBackend")
    try:
        await sandboxio.create()
        assert the_backend().config == RecordingConfig()
    finally:
        known = cast("Any", registry)._registry
        known._targets.pop("docker")
        known._classes.pop("docker")


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


async def test_the_fake_is_created_by_its_dsn() -> None:
    async with sandboxio.create("fake://", metadata={"tenant_id": "acme"}) as sandbox:
        assert (sandbox.backend, sandbox.metadata["tenant_id"]) == ("fake", "acme")
        assert (await sandbox.run(["echo", "hello"])).stdout == "hello\n"
    with pytest.raises(sandboxio.SandboxGone):
        await sandbox.run(["echo", "hello"])
