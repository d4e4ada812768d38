"""Every example runs, on the fake and on a real engine, and stands in the index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
WITHOUT_ENGINE = {"test_my_tool.py"}
LINK = re.compile(r"^\| \[([^]]+)\]\(([^)]+)\) \|", re.MULTILINE)

# What the last lines of an example must say, in either place unless they differ there.
EXPECTED = {
    "hello.py": {"both": ["exit code 0, isolation container"]},
    "one_line_swap.py": {
        "both": ["words: 3"],
        "fake": ["a context remembers: 42"],
        "docker": ["a context remembers: not offered here"],
    },
    "streaming.py": {
        "both": [
            "stdout: step 1",
            "exit code 0",
            "echoed: typed while it runs",
            "SBX_E1302, and until then it wrote: a beginning",
            "only that execution was ended; the sandbox lives on",
        ]
    },
    "egress.py": {
        "both": ["by default: denied: [Errno 101] Network is unreachable"],
        "fake": ["with a list: denied: [Errno 101] Network is unreachable"],
        "docker": ["with a list: refused, SBX_E1101"],
    },
    "files.py": {
        "both": [
            "a.txt: 9 bytes",
            "c.txt: 7 bytes",
            "SBX_E1701 for a file that is not there",
            "all: ['pear', 'fig', 'apple', 'quince']",
        ]
    },
    "many_sandboxes.py": {"both": ["squares: [0, 1, 4, 9, 16, 25, 36, 49]"]},
    "audit_and_spans.py": {
        "both": [
            "span: sandboxio.create (below the agent's)",
            "span: execute_tool run (below the agent's)",
            "span: execute_tool run (below the agent's), SBX_E1302",
            "span: sandboxio.kill (below the agent's)",
            "span: agent",
            "event: run acme ['echo', '--token=[redacted]'] ok",
            "event: run acme ['sleep', '60'] SBX_E1302",
            "the secret is in the audit file: False",
        ]
    },
    "langgraph_agent.py": {
        "both": [
            "AGENT_MODEL is not set, so a scripted model stands in",
            "tool: exit code 0 stdout: 338350",
            "ai: the sandbox answered: 338350",
        ]
    },
    "openai_agents_agent.py": {
        "both": [
            "AGENT_MODEL is not set, so a scripted model stands in",
            "the tool answers: exit code 0 stdout: 3 fig quince",
            "the sandbox answered: exit code 0 stdout: 3 fig quince",
        ]
    },
    "test_my_tool.py": {"both": ["4 passed"]},
}

ON_THE_FAKE = (
    "import runpy, sys, sandboxio\n"
    "sandboxio.register('docker', 'fake_docker:FakeDocker')\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def run(program: Path, folder: Path, *launcher: str) -> list[str]:
    """Run a program in an empty folder and return the lines it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "AGENT_MODEL"}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", *launcher, str(program)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert list(folder.iterdir()) == []
    return done.stdout.splitlines()


def said(program: Path, place: str, lines: list[str]) -> list[str]:
    """Return what the example should have said and did not."""
    expected = EXPECTED[program.name]
    wanted = [*expected["both"], *expected.get(place, [])]
    return [line for line in wanted if not any(line in printed for printed in lines)]


def test_the_index_names_each_example_once() -> None:
    entries = LINK.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(target for _, target in entries) == [program.name for program in PROGRAMS]
    assert all(shown == target for shown, target in entries)


def test_each_example_has_words_that_it_must_say() -> None:
    assert sorted(EXPECTED) == [program.name for program in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_an_example_runs_on_the_fake(program: Path, tmp_path: Path) -> None:
    launcher = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    if program.name not in WITHOUT_ENGINE:
        launcher = ("-c", ON_THE_FAKE)
    assert said(program, "fake", run(program, tmp_path, *launcher)) == []


@pytest.mark.docker
@pytest.mark.parametrize(
    "program", [path for path in PROGRAMS if path.name not in WITHOUT_ENGINE], ids=lambda path: path.name
)
def test_an_example_runs_for_real(program: Path, tmp_path: Path) -> None:
    assert said(program, "docker", run(program, tmp_path)) == []


def test_an_example_that_fails_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import sandboxio\nsandboxio.no_such_name\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssertionError):
        run(broken, tmp_path / "empty")


def test_an_example_that_says_something_else_is_noticed() -> None:
    assert said(FOLDER / "hello.py", "fake", ["exit code 1"]) == ["exit code 0, isolation container"]
