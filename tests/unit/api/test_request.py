"""What `create` asks of a backend, and which arguments it refuses before that."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import sandboxio
from sandboxio import ConfigurationError, NetworkPolicy, Resources

from .recording import RecordingBackend, RecordingConfig, the_backend


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


async def test_the_default_lifetime_is_five_minutes() -> None:
    await sandboxio.create("recording://")
    assert the_backend().request["timeout"] == 300


@pytest.mark.parametrize("function", [sandboxio.create, sandboxio.create_sync])
def test_the_signature_shows_the_default(function: Any) -> None:
    assert "timeout: 'float' = 300," in str(inspect.signature(function))


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
