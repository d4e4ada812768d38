"""Each Python block of a README and of a first page is a program or a test that runs, with the fake in place.

So does each command line of the README that calls `sandboxio`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIRST_PAGES = ("docs/quickstart.md", "docs/how-to/offline-testing.md")
READMES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("packages/*/README.md")),
    *(ROOT / page for page in FIRST_PAGES),
]
PYTHON_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASH_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = "uv run sandboxio "
FAKE_INSTEAD = """
import sandboxio
for name in ("docker", "e2b"):
    sandboxio.register(name, "sandboxio.testing.fake:FakeBackend")
"""


def blocks_of(page: Path) -> list[str]:
    return PYTHON_BLOCK.findall(page.read_text(encoding="utf-8"))


def run_with_fake(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "readme_block.py"
    script.write_text(program, encoding="utf-8")
    if "def test_" in program:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(script)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    launcher = f"{FAKE_INSTEAD}\nimport runpy\nrunpy.run_path({str(script)!r}, run_name='__main__')"
    command = [sys.executable, "-W", "error", "-c", launcher]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT).as_posix()}-{number}")
    for page in READMES
    for number, block in enumerate(blocks_of(page), start=1)
]


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_readme_shows_code(page: Path) -> None:
    assert blocks_of(page)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_readme_block_runs(block: str, tmp_path: Path) -> None:
    done = run_with_fake(block, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def commands_of(page: Path) -> list[str]:
    """The lines that call the command line tool, each with what is piped into it."""
    blocks = BASH_BLOCK.findall(page.read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines() if COMMAND in line]


def run_command_with_fake(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    tool = f"{FAKE_INSTEAD}\nimport sys\nfrom sandboxio.cli import main\nsys.exit(main())"
    (folder / "tool.py").write_text(tool, encoding="utf-8")
    called = line.replace(COMMAND, shlex.join([sys.executable, "tool.py"]) + " ")
    return subprocess.run(
        ["sh", "-c", called],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_readme_shows_commands() -> None:
    assert commands_of(ROOT / "README.md")


@pytest.mark.parametrize("line", commands_of(ROOT / "README.md"))
def test_a_command_of_the_readme_runs(line: str, tmp_path: Path) -> None:
    done = run_command_with_fake(line, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("arguments", ["run --no-such-option -- true", "no-such-command"])
def test_a_command_that_does_not_run_is_noticed(arguments: str, tmp_path: Path) -> None:
    assert run_command_with_fake(f"{COMMAND}{arguments}", tmp_path).returncode != 0


@pytest.mark.parametrize(
    "program",
    [
        "import sandboxio\nsandboxio.no_such_name",
        "import asyncio\nawait x",
        "def test_it():\n    assert False",
    ],
)
def test_a_block_that_does_not_run_is_noticed(program: str, tmp_path: Path) -> None:
    assert run_with_fake(program, tmp_path).returncode != 0
