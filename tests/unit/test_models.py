"""The value objects."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from sandboxio import models
from sandboxio.errors import ConfigurationError, ExecutionError
from sandboxio.models import (
    ISOLATION_RANK,
    Capability,
    ExecResult,
    IsolationTier,
    ManagedSandbox,
    Resources,
)

VALUE_CLASSES = [cls for name in models.__all__ if dataclasses.is_dataclass(cls := getattr(models, name))]


@pytest.mark.parametrize("cls", VALUE_CLASSES)
def test_every_value_object_is_frozen_and_slotted(cls: Any) -> None:
    assert cls.__dataclass_params__.frozen
    assert "__slots__" in vars(cls)


@pytest.mark.parametrize("name", ["cpu", "memory_mb", "disk_mb"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "2"])
def test_a_cap_is_a_positive_number(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Resources(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["memory_mb", "disk_mb"])
def test_a_size_is_a_whole_number(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Resources(**{name: 1.5})  # type: ignore[arg-type]


def test_half_a_core_is_a_cap() -> None:
    assert Resources(cpu=0.5).cpu == 0.5


def test_an_empty_gpu_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="gpu"):
        Resources(gpu="")


def test_a_good_result_is_returned_by_raise_for_status() -> None:
    result = ExecResult(0, "out", "")
    assert result.ok
    assert result.raise_for_status() is result


@pytest.mark.parametrize("code", [1, 127, 137, -1])
def test_a_bad_result_raises_and_is_on_the_error(code: int) -> None:
    result = ExecResult(code, "", "reason")
    assert not result.ok
    with pytest.raises(ExecutionError, match=str(code)) as caught:
        result.raise_for_status()
    assert caught.value.result is result


def test_results_are_compared_by_value() -> None:
    assert ExecResult(0, "a", "") == ExecResult(0, "a", "", truncated=False)
    assert ExecResult(0, "a", "") != ExecResult(0, "a", "", truncated=True)


def test_every_tier_has_a_rank_of_its_own() -> None:
    assert set(ISOLATION_RANK) == set(IsolationTier)
    assert len(set(ISOLATION_RANK.values())) == len(IsolationTier)


@pytest.mark.parametrize(("low", "high"), list(itertools.pairwise(IsolationTier)))
def test_tiers_are_ordered(low: IsolationTier, high: IsolationTier) -> None:
    assert low < high
    assert low <= high
    assert high > low
    assert high >= low
    assert not high < low
    assert high.satisfies(high)
    assert not low.satisfies(high)


def test_a_higher_tier_satisfies_a_lower_one() -> None:
    assert IsolationTier.MICROVM.satisfies(IsolationTier.CONTAINER)


@pytest.mark.parametrize("minimum", [tier for tier in IsolationTier if tier is not IsolationTier.UNKNOWN])
def test_unknown_satisfies_nothing(minimum: IsolationTier) -> None:
    assert not IsolationTier.UNKNOWN.satisfies(minimum)


@pytest.mark.parametrize("tier", IsolationTier)
def test_unknown_cannot_be_required(tier: IsolationTier) -> None:
    with pytest.raises(ConfigurationError, match="UNKNOWN"):
        tier.satisfies(IsolationTier.UNKNOWN)


def test_tiers_compare_with_nothing_else() -> None:
    for comparison in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(IsolationTier.CONTAINER, comparison)(10) is NotImplemented


def test_there_is_no_arithmetic_on_tiers() -> None:
    with pytest.raises(TypeError):
        IsolationTier.CONTAINER + 10  # type: ignore[operator]


def test_capabilities_combine() -> None:
    declared = Capability.RUN_COMMAND | Capability.STREAMING
    assert Capability.RUN_COMMAND in declared
    assert Capability.PTY not in declared


def test_metadata_of_a_listed_sandbox_is_empty_by_default() -> None:
    assert dict(ManagedSandbox("id", "fake").metadata) == {}
