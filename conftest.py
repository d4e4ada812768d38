"""What a skipped test means, for every suite of the repository.

A test marked `docker` is skipped where no engine answers, and the summary says so. `SBX_REQUIRE_DOCKER=1`
turns that skip into a failure. `SBX_STRICT_SKIPS=1` fails the run on every skip that
`tests/allowed_skips.toml` does not explain.
"""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

NO_ENGINE = "no Docker engine answers"
NO_GVISOR = "the Docker engine has no runtime named runsc (gVisor)"
ALLOWED_SKIPS = Path(__file__).parent / "tests" / "allowed_skips.toml"


@dataclass(frozen=True, slots=True)
class AllowedSkip:
    """A skip that may happen even where everything is there."""

    test: str
    reason: str
    because: str

    def covers(self, nodeid: str, reason: str) -> bool:
        """Tell whether this entry explains the skip of `nodeid` for `reason`."""
        return fnmatch.fnmatchcase(nodeid, self.test) and re.search(self.reason, reason) is not None


def load_allowed_skips(path: Path) -> tuple[AllowedSkip, ...]:
    """Read the allow-list; an entry that lacks a key, or has one too many, is an error."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("skip", [])
    return tuple(AllowedSkip(**entry) for entry in entries)


@cache
def engine_problem() -> str | None:
    """Return why no Docker engine can be used, or `None` when one answers."""
    import docker  # only runs that select Docker tests pay for this import
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=10)
    except DockerException as error:
        return str(error)
    try:
        client.ping()
    except (DockerException, OSError) as error:
        return str(error)
    finally:
        client.close()
    return None


@cache
def engine_runs_gvisor() -> bool:
    """Tell whether the engine offers gVisor's runtime."""
    import docker

    client = docker.from_env(timeout=10)
    try:
        return "runsc" in client.info().get("Runtimes", {})
    finally:
        client.close()


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason a skipped test gave."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail, a Docker test where no engine answers; skip one for gVisor where it is not installed."""
    needs_gvisor = item.get_closest_marker("gvisor") is not None
    if not needs_gvisor and item.get_closest_marker("docker") is None:
        return
    problem = engine_problem()
    if problem is None:
        if needs_gvisor and not engine_runs_gvisor():
            pytest.skip(NO_GVISOR)
        return
    if os.environ.get("SBX_REQUIRE_DOCKER") == "1":
        pytest.fail(f"{NO_ENGINE}, and SBX_REQUIRE_DOCKER=1 demands one: {problem}", pytrace=False)
    pytest.skip(NO_ENGINE)


class SkipJudge:
    """Collects the skips of a run and judges them at its end."""

    def __init__(self, allowed: tuple[AllowedSkip, ...], *, strict: bool) -> None:
        self.allowed = allowed
        self.strict = strict
        self.without_engine = 0
        self.unexpected: Counter[str] = Counter()

    def judge(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Take note of one report if it is a skip."""
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = skip_reason(report)
        if reason == NO_ENGINE:
            self.without_engine += 1
        if not any(entry.covers(report.nodeid, reason) for entry in self.allowed):
            self.unexpected[f"{report.nodeid}: {reason}"] += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Judge a test."""
        self.judge(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Judge a module or a class that skipped itself while it was collected."""
        self.judge(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a strict run that skipped something without a known reason."""
        if self.strict and self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left out, and how to have it run."""
        if self.without_engine:
            terminalreporter.section("skipped for want of a Docker engine", yellow=True)
            terminalreporter.line(
                f"{self.without_engine} tests need a Docker engine and none answers. Start one and run them,"
            )
            terminalreporter.line(
                "or as root on Debian or Ubuntu: scripts/docker-engine.sh up && scripts/docker-image.sh"
            )
        if self.strict and self.unexpected:
            terminalreporter.section("skips that nothing explains (SBX_STRICT_SKIPS=1)", red=True)
            for line in self.unexpected:
                terminalreporter.line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Install the judge."""
    judge = SkipJudge(load_allowed_skips(ALLOWED_SKIPS), strict=os.environ.get("SBX_STRICT_SKIPS") == "1")
    config.pluginmanager.register(judge, "sandboxio-skip-judge")
