"""What a terminal is shown, and what anything else is not: colours and progress."""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
import unicodedata
from collections.abc import Callable, Generator, Mapping
from types import SimpleNamespace

import pytest

from sandboxio.cli import progress
from sandboxio.cli.progress import waiting

ERASE = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal on which progress shows at once."""
    found = Terminal()
    # Not in `sys`, where pytest puts its own one back before a test begins.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.001)
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0.001)
    return found


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_what_takes_long_is_shown_and_leaves_no_trace(terminal: Terminal) -> None:
    with waiting("creating the sandbox"):
        until(lambda: "creating the sandbox … 0 s" in terminal.getvalue())
    assert terminal.getvalue().endswith(ERASE)


def test_what_is_quick_is_not_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 60)
    with waiting("creating the sandbox"):
        pass
    assert terminal.getvalue() == ""


def test_what_the_library_says_meanwhile_replaces_it(terminal: Terminal) -> None:
    with waiting("creating the sandbox"):
        logging.getLogger("sandboxio.docker").info("pulling the image %s", "x\x1b[2J")
        until(lambda: "pulling the image x\ufffd[2J" in terminal.getvalue())
    assert not any(handler.level == logging.INFO for handler in logging.getLogger("sandboxio").handlers)


def test_no_line_is_longer_than_a_terminal_is_wide(terminal: Terminal) -> None:
    with waiting("x" * 500):
        until(lambda: "xxx" in terminal.getvalue())
    assert max(len(line) for line in terminal.getvalue().split(ERASE)) < 80


@pytest.fixture
def narrow(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """A real terminal of twelve columns in place of that one; what is shown on it can be read here."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 12, 0, 0))
    with open(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
        yield ours
    os.close(ours)


@pytest.mark.parametrize("doing", ["creating the sandbox", "沙箱沙箱沙箱沙箱", "a\nb\tc\x1b[31m" * 5])
def test_a_narrow_terminal_has_one_line_of_it_at_a_time(doing: str, narrow: int) -> None:
    shown = b""
    with waiting(doing):
        while shown.count(b"\r") < 3:
            shown += os.read(narrow, 4096)
    frames = shown.decode(errors="ignore").split(ERASE)[1:3]
    assert all(frames)
    assert (
        max(sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in frame) for frame in frames) < 12
    )
    assert all(frame.isprintable() for frame in frames)


def test_a_terminal_that_has_gone_stops_the_line_and_nothing_else(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    failures: list[object] = []

    class Gone(Terminal):
        def write(self, text: str) -> int:
            asked.append(text)
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=Gone()))
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with waiting("creating the sandbox"):
        until(lambda: bool(asked))
    assert failures == []


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_nothing_is_shown_where_no_terminal_can_show_it(
    stream: io.StringIO, term: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("TERM", term)
    with waiting("creating the sandbox"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def demo_on_a_terminal(environment: Mapping[str, str]) -> str:
    """What the demo writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sandboxio", "demo", "--backend", "fake://"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={"TERM": "xterm", **environment}
    )
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 4096):
            written += part
    except OSError:  # how Linux tells that the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0
    return written.decode()


def test_a_terminal_shows_colours() -> None:
    assert "\x1b[32mok" in demo_on_a_terminal({})


def test_no_color_is_respected() -> None:
    assert "\x1b[3" not in demo_on_a_terminal({"NO_COLOR": "1"})


def test_a_pipe_gets_plain_text() -> None:
    command = [sys.executable, "-m", "sandboxio", "demo", "--backend", "fake://"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"TERM": "xterm"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
