"""The suite finds faults: each broken fake fails the tests that name its fault, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

FAULTS = {
    "TestLeaky": {
        "test_by_default_nothing_reaches_the_canary",
        "test_denied_egress_does_not_reach_the_canary",
        "test_one_sandboxs_open_egress_opens_no_other",
        "test_a_destination_that_is_not_listed_is_not_reached",
        "test_a_port_that_is_not_listed_is_not_reached",
        "test_learning_egress_denies_like_deny",
    },
    "TestOrphaning": {
        "test_a_creation_cancelled_on_its_way_leaves_nothing_behind",
        "test_a_creation_cancelled_at_any_await_leaves_nothing_behind",
    },
    "TestExitCodeSwallowing": {
        "test_every_exit_code_comes_through_as_it_is",
        "test_raise_for_status_raises_what_the_exit_code_says",
        "test_many_commands_at_once_keep_their_exit_codes_apart",
        "test_a_file_that_cannot_be_executed_is_exit_code_126_with_the_reason_on_stderr",
        "test_wait_gives_the_exit_code",
        "test_wait_after_reading_to_the_end_gives_the_exit_code",
        "test_the_exit_code_of_a_command_is_recorded",
    },
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[set[str], set[str]]]:
    """For each broken fake the names of the tests that failed and of those that passed."""
    report = tmp_path_factory.mktemp("broken") / "report.xml"
    command = [sys.executable, "-m", "pytest", str(HERE / "broken_fakes.py")]
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", f"--junitxml={report}", f"--rootdir={ROOT}"]
    subprocess.run([*command, *options], cwd=ROOT, capture_output=True, timeout=300, check=False)
    found: dict[str, tuple[set[str], set[str]]] = {}
    for case in ET.parse(report).iter("testcase"):
        failed, passed = found.setdefault(case.attrib["classname"].rpartition(".")[2], (set(), set()))
        name = case.attrib["name"].partition("[")[0]
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
        elif case.find("skipped") is None:
            passed.add(name)
    return found


@pytest.mark.parametrize("fake", FAULTS)
def test_a_broken_fake_fails_the_tests_that_name_its_fault_and_no_others(
    outcomes: dict[str, tuple[set[str], set[str]]], fake: str
) -> None:
    failed, passed = outcomes[fake]
    assert failed == FAULTS[fake]
    assert len(passed - failed) > 100
