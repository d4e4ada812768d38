"""What runs in a kernel before a cell, run by a real Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sandboxio.adapter.tree_kill import MARKER_VARIABLE, Numbers
from sandboxio_e2b.preamble import HAS_NUMBER, check_kernel, number_kernel, set_variables

NUMBERS = Numbers("key")
MARKER, LATER = NUMBERS.next(), NUMBERS.next()
LIMIT = "import json, resource; print(json.dumps(resource.getrlimit(10)))"

NASTY = [
    "it's",
    '"',
    "\\",
    "\\'",
    "'''",
    "a\nb\r",
    "{given!r} {0} {}",
    "%s",
    "é中🙂",
    "\x01\x1b",
    "",
    "#",
    "$x",
]

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


def run(*cells: str, env: dict[str, str] | None = None) -> list[object]:
    """Run cells in one namespace; what each line of their output says in JSON."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells)],
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8", **(env or {})},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(*cells: str) -> str:
    """What cells in one namespace write."""
    run_cells = [sys.executable, "-c", "\n".join(cells)]
    return subprocess.run(run_cells, capture_output=True, timeout=20, check=True, text=True).stdout


def show(*names: str) -> str:
    return f"import json, os; print(json.dumps([os.environ.get(name) for name in {names!r}]))"


@on_linux
def test_a_kernel_and_what_it_starts_get_the_limit() -> None:
    child = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LIMIT!r}], start_new_session=True)"
    )
    expected = [int(MARKER), int(MARKER)]
    assert run(number_kernel(MARKER, as_limit=True), LIMIT, child) == [expected, expected]


@on_linux
def test_a_kernel_that_has_the_limit_has_no_variable() -> None:
    assert run(number_kernel(MARKER, as_limit=True), show(MARKER_VARIABLE)) == [[None]]


def test_where_there_is_no_limit_it_gets_the_variable() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show(MARKER_VARIABLE)!r}])"
    assert run(number_kernel(MARKER, as_limit=False), child) == [[MARKER]]


@on_linux
def test_a_kernel_is_told_from_the_one_that_took_its_place() -> None:
    numbered = number_kernel(MARKER, as_limit=True)
    assert said(numbered, check_kernel(MARKER, as_limit=True)) == HAS_NUMBER
    assert said(check_kernel(MARKER, as_limit=True)) == ""
    assert said(numbered, check_kernel(LATER, as_limit=True)) == ""


def test_a_kernel_is_told_by_its_variable_where_there_is_no_limit() -> None:
    numbered = number_kernel(MARKER, as_limit=False)
    assert said(numbered, check_kernel(MARKER, as_limit=False)) == HAS_NUMBER
    assert said(check_kernel(MARKER, as_limit=False)) == ""
    assert said(numbered, check_kernel(LATER, as_limit=False)) == ""


def test_the_kernels_history_is_switched_off() -> None:
    shell = (
        "class Manager: enabled = True\n"
        "class Shell: history_manager = Manager()\n"
        "def get_ipython(): return Shell\n"
    )
    told = "import json; print(json.dumps(Shell.history_manager.enabled))"
    assert run(shell, told) == [True]
    assert run(shell, number_kernel(MARKER, as_limit=False), told) == [False]


def test_it_takes_up_no_name_and_no_more_than_one_line() -> None:
    names = "import json; print(json.dumps(sorted(set(globals()) - {'json'})))"
    codes = [
        number_kernel(MARKER, as_limit=False),
        check_kernel(LATER, as_limit=False),
        set_variables({"A": "b\nc"}),
    ]
    assert all("\n" not in code for code in codes)
    before, after = run(names, *codes, names)
    assert before == after


def test_it_is_an_expression_without_a_value() -> None:
    for code in (number_kernel(MARKER, as_limit=False), set_variables({"A": "b"})):
        assert run(f"import json; print(json.dumps({code}))") == [None]


@pytest.mark.parametrize("value", NASTY)
def test_a_value_arrives_as_it_is(value: str) -> None:
    assert run(set_variables({"X": value}), show("X")) == [[value]]


def test_all_values_at_once() -> None:
    values = {f"X{n}": value for n, value in enumerate(NASTY)}
    assert run(set_variables(values), show(*values)) == [NASTY]


def test_a_child_sees_the_variables() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show('X')!r}])"
    assert run(set_variables({"X": "it's"}), child) == [["it's"]]


def test_the_next_cell_has_only_its_own_variables() -> None:
    seen = show("WAS", "NEW", "BOTH")
    assert run(
        seen,
        set_variables({"WAS": "changed", "NEW": "1", "BOTH": "1"}),
        seen,
        set_variables({"BOTH": "2"}),
        seen,
        set_variables({}),
        seen,
        set_variables({"WAS": "again"}),
        seen,
        env={"WAS": "there"},
    ) == [
        ["there", None, None],
        ["changed", "1", "1"],
        ["there", None, "2"],
        ["there", None, None],
        ["again", None, None],
    ]


def test_what_a_cell_makes_of_its_variables_is_taken_back_too() -> None:
    seen = show("WAS", "NEW")
    assert run(
        set_variables({"WAS": "1", "NEW": "1"}),
        "import os; os.environ.pop('NEW'); os.environ['WAS'] = 'mine'",
        set_variables({}),
        seen,
        env={"WAS": "there"},
    ) == [["there", None]]


def test_a_variable_of_the_cells_own_stays() -> None:
    assert run(
        set_variables({"X": "1"}),
        "import os; os.environ['OWN'] = 'kept'",
        set_variables({}),
        show("OWN", "X"),
    ) == [["kept", None]]
