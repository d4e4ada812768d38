"""The suite itself: what it skips it says, and its own instruments measure right."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from sandboxio.testing.suite.cancel_points import cancel_at

SUITE = """
from typing import ClassVar
from sandboxio.models import Capability
from sandboxio.testing.fake import FakeBackend, FakeConfig
from sandboxio.testing.suite.{module} import {rows}

class TestSome({rows}):
    anyio_backends: ClassVar[tuple[str, ...]] = {loops!r}

    def make_backend(self, audit):
        return FakeBackend(FakeConfig(audit=audit))
"""


def run(
    pytester: pytest.Pytester, module: str, rows: str, *options: str, loops: tuple[str, ...] = ("asyncio",)
) -> pytest.RunResult:
    pytester.makepyfile(SUITE.format(module=module, rows=rows, loops=loops))
    return pytester.runpytest_inprocess("-rs", "-v", "-p", "no:cacheprovider", *options)


def test_a_missing_probe_skips_its_tests_by_name(pytester: pytest.Pytester) -> None:
    result = run(pytester, "lifecycle", "LifecycleTests", "-k", "leaving_the_context_ends")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*the probe count_sandboxes is not supplied*"])


def test_what_is_declared_skips_the_negative_tests_visibly(pytester: pytest.Pytester) -> None:
    result = run(pytester, "capabilities", "CapabilityTests", "-k", "run_that_is_not_declared")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*RUN_COMMAND is declared*"])


def test_the_suite_needs_no_setting_of_the_project_that_uses_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, "isolation", "IsolationTests", loops=("asyncio", "trio"))
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*trio*"])


def test_the_event_loops_can_be_narrowed(pytester: pytest.Pytester) -> None:
    result = run(pytester, "isolation", "IsolationTests", loops=("trio",))
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*[[]asyncio[]]*")


async def three_steps(reached: list[int]) -> str:
    for step in range(3):
        await anyio.lowlevel.checkpoint()
        reached.append(step)
    return "done"


@pytest.mark.anyio
async def test_a_point_of_nought_cancels_nothing() -> None:
    result, awaits = await cancel_at(0, three_steps([]))
    assert result == "done"
    assert awaits >= 3


@pytest.mark.anyio
async def test_cancelling_at_the_first_await_stops_before_the_first_step() -> None:
    reached: list[int] = []
    result, _ = await cancel_at(1, three_steps(reached))
    assert (result, reached) == (None, [])


@pytest.mark.anyio
async def test_cancelling_later_stops_later() -> None:
    _, awaits = await cancel_at(0, three_steps([]))
    stops: list[int] = []
    for point in range(1, awaits + 1):
        reached: list[int] = []
        await cancel_at(point, three_steps(reached))
        stops.append(len(reached))
    assert stops == sorted(stops)
    assert stops[0] == 0
    assert stops[-1] >= 2
