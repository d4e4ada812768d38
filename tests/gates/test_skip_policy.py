"""Docker tests fail where an engine is demanded, and a skip that nothing explains fails a strict run."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLUGIN = (ROOT / "conftest.py").read_text(encoding="utf-8").replace('pytest_plugins = ["pytester"]\n', "")
E2B_TESTS = ROOT / "packages" / "sandboxio-e2b" / "tests"
E2B_PLUGIN = (E2B_TESTS / "conftest.py").read_text(encoding="utf-8")
NO_ENGINE_HERE = "\n\ndef engine_problem() -> str | None:\n    return 'connection refused'\n"

DOCKER_TEST = """
import pytest

@pytest.mark.docker
def test_needs_an_engine():
    raise AssertionError("must not run without an engine")
"""

NO_ROOT_HERE = "\n\ndef unavailable() -> str | None:\n    return 'it takes root'\n"

CANARY_TEST = """
def test_needs_a_canary(canary_address):
    raise AssertionError("must not run where egress cannot be filtered")
"""

SKIPPING_TEST = """
import pytest

def test_skips():
    pytest.skip("the moon is full")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small checkout under the policy, on a machine without an engine."""
    monkeypatch.delenv("SBX_REQUIRE_DOCKER", raising=False)
    monkeypatch.delenv("SBX_STRICT_SKIPS", raising=False)
    pytester.makeconftest(PLUGIN + NO_ENGINE_HERE)
    pytester.makeini("[pytest]\nmarkers =\n    docker: needs an engine\n")
    allow_list(pytester, "")
    return pytester


@pytest.fixture
def e2b_suite(suite: pytest.Pytester) -> pytest.Pytester:
    """A suite of the E2B adapter, run by somebody who is not root."""
    suite.makeconftest(E2B_PLUGIN + NO_ROOT_HERE)
    suite.makeini(f"[pytest]\npythonpath = {E2B_TESTS / 'support'}\n")
    return suite


def allow_list(suite: pytest.Pytester, text: str) -> None:
    folder = suite.path / "tests"
    folder.mkdir(exist_ok=True)
    (folder / "allowed_skips.toml").write_text(text)


def run(suite: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    suite.makepyfile(source)
    return suite.runpytest_subprocess("-p", "no:sandboxio", "-p", "no:cacheprovider", *options)


def test_a_docker_test_is_skipped_without_an_engine_and_the_summary_says_so(suite: pytest.Pytester) -> None:
    result = run(suite, DOCKER_TEST)
    result.assert_outcomes(skipped=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*skipped for want of a Docker engine*", "1 tests need a Docker engine*"])


def test_a_docker_test_fails_where_an_engine_is_required(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_REQUIRE_DOCKER", "1")
    result = run(suite, DOCKER_TEST)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*SBX_REQUIRE_DOCKER=1 demands one: connection refused*"])


def test_where_egress_cannot_be_filtered_a_test_of_it_is_skipped_and_says_why(
    e2b_suite: pytest.Pytester,
) -> None:
    result = run(e2b_suite, CANARY_TEST, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*egress cannot be filtered on this host: it takes root"])


def test_where_egress_cannot_be_filtered_a_test_of_it_fails_if_an_engine_is_required(
    e2b_suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_REQUIRE_DOCKER", "1")
    result = run(e2b_suite, CANARY_TEST)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*it takes root, and SBX_REQUIRE_DOCKER=1 demands it"])


def test_an_unexplained_skip_fails_a_strict_run(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_STRICT_SKIPS", "1")
    result = run(suite, SKIPPING_TEST)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*skips that nothing explains*", "*test_skips: the moon is full"])


def test_an_unexplained_skip_of_a_whole_module_fails_a_strict_run(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_STRICT_SKIPS", "1")
    suite.makepyfile(test_beside="def test_passes():\n    pass\n")
    result = run(suite, "import pytest\npytest.skip('not today', allow_module_level=True)\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*: not today"])


def test_an_explained_skip_passes_a_strict_run(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_STRICT_SKIPS", "1")
    allow_list(suite, "[[skip]]\ntest = '*::test_skips'\nreason = 'moon'\nbecause = 'it happens'\n")
    assert run(suite, SKIPPING_TEST).ret == 0


def test_an_entry_of_the_allow_list_must_say_why(suite: pytest.Pytester) -> None:
    allow_list(suite, "[[skip]]\ntest = '*'\nreason = '.'\n")
    result = run(suite, SKIPPING_TEST)
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*because*"])


def test_a_skip_is_no_fault_in_a_run_that_is_not_strict(suite: pytest.Pytester) -> None:
    assert run(suite, SKIPPING_TEST).ret == 0
