"""The value objects."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
from typing import Any

import pytest

from sandboxio import models
from sandboxio.errors import ConfigurationError, ExecutionError
from sandboxio.models import (
    ISOLATION_RANK,
    Capability,
    ExecResult,
    FrozenMapping,
    IsolationTier,
    ManagedSandbox,
    OutputChunk,
    Resources,
    RichOutput,
    shown,
)

VALUE_CLASSES = [cls for name in models.__all__ if dataclasses.is_dataclass(cls := getattr(models, name))]


@pytest.mark.parametrize("cls", VALUE_CLASSES)
def test_every_value_object_is_frozen_and_slotted(cls: Any) -> None:
    assert cls.__dataclass_params__.frozen
    assert "__slots__" in vars(cls)


@pytest.mark.parametrize("name", ["cpu", "memory_mb", "disk_mb"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "2", 2**41, 10**400, -(10**400)])
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


def test_a_number_that_cannot_be_written_out_is_refused_in_words() -> None:
    with pytest.raises(ConfigurationError, match="memory_mb is a huge int"):
        Resources(memory_mb=10**5000)


def test_metadata_of_a_listed_sandbox_is_empty_by_default() -> None:
    assert dict(ManagedSandbox("id", "fake").metadata) == {}


@pytest.mark.parametrize(
    "value",
    [
        ManagedSandbox("id", "fake", metadata={"tenant_id": "acme"}),
        ExecResult(0, "out", "", results=(RichOutput("text/plain", "1"),)),
        Resources(cpu=1),
        FrozenMapping({"a": 1}),
    ],
)
def test_a_value_can_be_hashed_copied_and_sent(value: object) -> None:
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert hash(copy.copy(value)) == hash(value)


def test_a_listed_sandbox_can_be_taken_apart() -> None:
    managed = ManagedSandbox("id", "fake", metadata={"tenant_id": "acme"})
    assert dataclasses.asdict(managed)["metadata"] == {"tenant_id": "acme"}


def test_metadata_cannot_be_changed_afterwards() -> None:
    given = {"tenant_id": "acme"}
    managed = ManagedSandbox("id", "fake", metadata=given)
    given["tenant_id"] = "other"
    assert managed.metadata == {"tenant_id": "acme"}
    with pytest.raises(TypeError):
        managed.metadata["tenant_id"] = "other"  # type: ignore[index]


@pytest.mark.parametrize(
    "value",
    [
        ExecResult(0, "x" * 10_000, "y" * 10_000, results=(RichOutput("text/plain", "z" * 10_000),)),
        OutputChunk("stdout", b"x" * 10_000),
        RichOutput("text/plain", "x" * 10_000),
    ],
)
def test_a_repr_is_short(value: object) -> None:
    assert len(repr(value)) < 400


def test_a_repr_tells_how_long_a_text_was_and_what_is_not_ordinary() -> None:
    assert repr(ExecResult(0, "a\n", "")) == "ExecResult(exit_code=0, stdout='a\\n', stderr='')"
    result = ExecResult(1, "x" * 500, "\x1b[2J", truncated=True, results=())
    assert repr(result) == (
        f"ExecResult(exit_code=1, stdout='{'x' * 80}'… (500 characters), stderr='\\x1b[2J', "
        "results=<0 outputs>, truncated=True)"
    )
    assert shown(b"x" * 500).endswith("… (500 bytes)")


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("", "exit code 1"),
        (" \n\n", "exit code 1"),
        ("Traceback …\nValueError: no\n\n", "exit code 1: ValueError: no"),
        ("a\x1b[2Jb", "exit code 1: a [2Jb"),
        ("x" * 10**6, f"exit code 1: {'x' * 200}…"),
    ],
)
def test_an_error_repeats_the_last_line_of_stderr(stderr: str, words: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        ExecResult(1, "", stderr).raise_for_status()
    assert caught.value.message == f"the execution ended with {words}"
