"""The numbers that executions run under."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from sandboxio.adapter.tree_kill import Numbers, end_tree

LARGEST_LIMIT = 2**63 - 1


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("sandboxio.adapter.tree_kill.time.time", clock)
    return clock


def strictly_falling(numbers: list[str]) -> bool:
    return all(int(later) < int(earlier) for earlier, later in pairwise(numbers))


def test_each_number_is_lower_than_the_one_before() -> None:
    numbers = Numbers("key")
    given = [numbers.next() for _ in range(2000)]
    assert strictly_falling(given)
    assert all(len(number) == 19 and 0 < int(number) < LARGEST_LIMIT for number in given)


def test_so_it_is_however_much_time_passes_and_when_the_clock_is_set_back(clock: Clock) -> None:
    numbers = Numbers("key")
    given = [numbers.next()]
    for step in (0, 0.001, 0.01, 5, 86_400, 10 * 365 * 86_400, -3600, -86_400, 0):
        clock.now += step
        given.append(numbers.next())
    assert strictly_falling(given)


def test_what_another_handle_of_the_sandbox_starts_later_has_a_lower_number(clock: Clock) -> None:
    first, second = Numbers("key"), Numbers("key")
    given: list[str] = []
    for turn in range(10):
        given.append((first, second)[turn % 2].next())
        clock.now += 0.02
    given.append(Numbers("key").next())
    assert strictly_falling(given)


def test_two_handles_of_a_sandbox_give_no_number_twice(clock: Clock) -> None:
    first, second = Numbers("of one sandbox"), Numbers("of one sandbox")
    given = [numbers.next() for _ in range(50) for numbers in (first, second)]
    assert strictly_falling(given)


def test_the_seal_depends_on_the_key(clock: Clock) -> None:
    one, other = Numbers("one key").next(), Numbers("other key").next()
    assert one[:12] == other[:12]
    assert one != other


@pytest.mark.anyio
@pytest.mark.parametrize("numbered", [True, False])
async def test_what_has_no_number_ends_nothing(numbered: bool) -> None:
    async def run(script: str, arguments: tuple[str, ...]) -> tuple[bytes, int | None]:
        raise AssertionError("no script may be run")

    with pytest.raises(ValueError, match="has a number"):
        await end_tree(run, "", "42", numbered=numbered, key="a key", crowd=64)
