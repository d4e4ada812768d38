"""Standard streams that are closed, full or abandoned: the work is done, and the exit code tells of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

DEMO = ("demo", "--backend", "fake://")
REAP = ("reap", "--backend", "fake://")
RUN = ("run", "--backend", "fake://")
UNKNOWN_BACKEND = ("run", "--backend", "nosuch://", "--", "x")
READER_GONE = 141
# With standard output buffered, as a user has it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="it needs a device that is always full")

LISTS_ONE = """
import sys
import sandboxio
from sandboxio.cli import main
from sandboxio.testing.fake import FakeBackend

class Holding(FakeBackend):
    async def list_managed(self):
        return (sandboxio.ManagedSandbox("abc", "holding", metadata={"who": "\u00e9"}),)

sandboxio.register("holding", "__main__:Holding")
sys.exit(main(["reap", "--backend", "holding://", "--label", "who=\u00e9", "--kill"]))
"""


def tool(*arguments: str, redirected: str) -> subprocess.CompletedProcess[str]:
    """Run the tool from a shell that redirects its streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "sandboxio", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=ENVIRONMENT,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (DEMO, 0),
        ((*DEMO, "--json"), 0),
        ((*RUN, "-c", "echo out; exit 7"), 7),
        (UNKNOWN_BACKEND, 2),
        ((), 2),
    ],
)
@pytest.mark.parametrize("redirected", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(redirected: str, arguments: tuple[str, ...], code: int) -> None:
    done = tool(*arguments, redirected=redirected)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_nothing_that_is_opened_later_takes_the_place_of_a_closed_stream() -> None:
    program = (
        "import os, sys; from sandboxio.cli import stdio; stdio.prepare(); sys.exit(os.open(os.devnull, 0))"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", program], timeout=60
    )
    assert done.returncode > 2


def test_without_standard_error_standard_output_holds_the_payload_alone() -> None:
    done = tool(*UNKNOWN_BACKEND[:3], "--json", *UNKNOWN_BACKEND[3:], redirected="2>&-")
    assert json.loads(done.stdout)["error"]["code"] == "SBX_E1001"


@FULL
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (DEMO, 1),
        ((*DEMO, "--json"), 1),
        ((*REAP, "--json"), 1),
        ((*RUN, "-c", "echo out"), 125),
        ((*RUN, "--json", "true"), 125),
        (("--help",), 1),
    ],
)
def test_what_cannot_be_written_is_told_in_one_line_and_a_failure(
    arguments: tuple[str, ...], code: int
) -> None:
    done = tool(*arguments, redirected=">/dev/full")
    assert (done.returncode, done.stderr) == (
        code,
        "sandboxio: standard output cannot be written: No space left on device\n",
    )


@FULL
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (UNKNOWN_BACKEND, 2),
        ((*RUN, "-c", "exit 7"), 7),
        (("no-such-command",), 2),
        ((*RUN, "--json", "--", "false"), 1),
    ],
)
def test_an_error_that_cannot_be_shown_leaves_the_exit_code(arguments: tuple[str, ...], code: int) -> None:
    assert tool(*arguments, redirected="2>/dev/full").returncode == code


@FULL
def test_a_document_that_cannot_be_written_leaves_the_code_of_a_command_that_failed() -> None:
    assert tool(*RUN, "--json", "-c", "exit 7", redirected=">/dev/full").returncode == 7


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (DEMO, READER_GONE),
        ((*DEMO, "--json"), READER_GONE),
        ((*REAP, "--json"), READER_GONE),
        ((*RUN, "-c", "echo out"), READER_GONE),
        ((*RUN, "--json", "echo"), READER_GONE),
        (("--help",), READER_GONE),
        ((*RUN, "--json", "false"), 1),
        (UNKNOWN_BACKEND, 2),
    ],
)
def test_a_reader_that_goes_away_is_141_and_no_traceback(arguments: tuple[str, ...], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "sandboxio", *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=ENVIRONMENT,
        )
    finally:
        os.close(writing)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_character_that_the_encoding_lacks_is_written_as_an_escape() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS_ONE],
        capture_output=True,
        timeout=60,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"abc" in done.stdout
    assert b"who=\\xe9" in done.stdout


def test_a_name_that_is_no_text_is_written_as_an_escape() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sandboxio", "doctor"],
        capture_output=True,
        timeout=60,
        env={b"SBX_\xff": b"1", b"PATH": os.environb[b"PATH"]},
    )
    assert b"Traceback" not in done.stderr
    assert b"set: SBX_" in done.stdout
