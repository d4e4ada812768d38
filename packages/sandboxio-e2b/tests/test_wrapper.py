"""The shell around a command, run by a real bash, and the filter that reads its status line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandboxio.adapter.driver import Exit
from sandboxio.adapter.tree_kill import MARKER_VARIABLE, Numbers
from sandboxio_e2b.process import NO_PROFILE
from sandboxio_e2b.wrapper import StatusFilter, wrap

WORD = "00d1ab1e00d1ab1e00d1ab1e00d1ab1e"
MARKER = Numbers("key").next()
START = b"\x1e" + WORD.encode() + b" "

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the wrapper is for a sandbox's Linux")


def filtered(*pieces: bytes) -> tuple[bytes, Exit | None]:
    """What comes through, and the exit that was read."""
    status = StatusFilter(WORD)
    passed = b"".join([status.feed(piece) for piece in pieces])
    return passed + status.flush(), status.exit


def pieces_of(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


class TestStatusFilter:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [(b"0", Exit(0)), (b"3", Exit(3)), (b"255", Exit(255)), (b"missing", Exit(127, missing=True))],
    )
    def test_the_status_line_is_taken_out_of_the_output_around_it(
        self, status: bytes, expected: Exit
    ) -> None:
        assert filtered(b"before" + START + status + b"\nafter") == (b"beforeafter", expected)

    @pytest.mark.parametrize("status", [b"0", b"137", b"missing"])
    def test_it_may_be_cut_anywhere(self, status: bytes) -> None:
        data = b"a\x1eb" + START + status + b"\n\x1ec"
        for cut in range(len(data) + 1):
            passed, exit = filtered(data[:cut], data[cut:])  # noqa: A001 -- the driver's word
            assert passed == b"a\x1eb\x1ec"
            assert exit is not None

    @given(
        st.lists(
            st.one_of(
                st.sampled_from(
                    [
                        b"\x1e",
                        START[:-1],
                        START[:9],
                        START + b"missing",
                        START + b"x" * 20,
                        START + b"\n",
                        START + b"7\n",
                        START + b"seven\n",
                        b"\n",
                    ]
                ),
                st.binary(max_size=8),
            ),
            max_size=8,
        ),
        st.lists(st.integers(0, 400), max_size=12),
    )
    @example([START + b"seven\n", START + b"7\n"], [len(START) + 6])
    @example([START + b"x" * 20, START + b"7\n"], [len(START) + 24])
    def test_where_the_input_is_cut_makes_no_difference(self, parts: list[bytes], cuts: list[int]) -> None:
        data = b"".join(parts)
        assert filtered(*pieces_of(data, cuts)) == filtered(data)

    @given(st.binary(max_size=200).filter(lambda data: START not in data), st.lists(st.integers(0, 200)))
    def test_output_without_the_word_comes_through_whole(self, data: bytes, cuts: list[int]) -> None:
        assert filtered(*pieces_of(data, cuts)) == (data, None)

    @pytest.mark.parametrize(
        "line",
        [
            b"\x1e" + WORD.upper().encode() + b" 0\n",
            b"\x1e" + WORD[:-1].encode() + b" 0\n",
            b"\x1e" + WORD.encode() + b"0\n",
            b"\x1e\x1e" + WORD[1:].encode() + b" 0\n",
            b"\x1d" + WORD.encode() + b" 0\n",
            START + b"\n",
            START + b"-1\n",
            START + b"+1\n",
            START + b"1000\n",
            START + b"1 \n",
            START + b" 1\n",
            START + b"Missing\n",
            START + b"missing 0\n",
            START + b"\xd9\xa1\n",
        ],
    )
    def test_a_line_that_is_almost_one_is_output(self, line: bytes) -> None:
        assert filtered(b"a" + line + b"b") == (b"a" + line + b"b", None)

    def test_a_line_that_is_almost_one_does_not_hide_the_one_behind_it(self) -> None:
        assert filtered(START + b"zero\n" + START + b"5\n") == (START + b"zero\n", Exit(5))

    def test_only_the_first_status_line_counts(self) -> None:
        again = START + b"9\n"
        assert filtered(START + b"0\n" + again) == (again, Exit(0))
        assert filtered(START + b"0\n", again) == (again, Exit(0))

    def test_what_may_become_a_status_line_is_held_and_given_back_at_the_end(self) -> None:
        status = StatusFilter(WORD)
        assert status.feed(b"out" + START + b"12") == b"out"
        assert status.exit is None
        assert status.flush() == START + b"12"
        assert status.flush() == b""

    def test_a_line_that_never_ends_is_not_held_for_ever(self) -> None:
        status = StatusFilter(WORD)
        passed = sum(len(status.feed(b"\x00" * 1000 if n else START)) for n in range(100))
        assert passed >= 99 * 1000


@dataclass(frozen=True)
class Ran:
    """How a wrapped command went, as the adapter sees it."""

    out: bytes
    err: bytes
    exit: Exit | None
    shell_code: int


Run = Callable[..., Ran]


def environment(home: Path, env: dict[str, str]) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], MARKER_VARIABLE: MARKER, **env}


def argv(command: str | Sequence[str], hidden: Mapping[str, str | None] | None = None) -> list[str]:
    return ["/bin/bash", "-l", "-c", wrap(command, MARKER, WORD, hidden or {})]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command as the SDK would, with a folder of its own as HOME and working folder.

    A profile there stands for the ones of the system, which no variable keeps a login shell from.
    """

    def run_one(
        command: str | Sequence[str],
        *,
        given: bytes = b"",
        hidden: Mapping[str, str | None] | None = None,
        **env: str,
    ) -> Ran:
        done = subprocess.run(
            argv(command, hidden if hidden is not None else {"HOME": str(tmp_path)}),
            env=environment(tmp_path, env),
            cwd=tmp_path,
            input=given,
            capture_output=True,
            timeout=20,
            check=False,
        )
        err, exit = filtered(done.stderr)  # noqa: A001 -- the driver's word
        return Ran(done.stdout, err, exit, done.returncode)

    return run_one


@on_linux
class TestWrap:
    @pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 255])
    def test_the_exit_code_is_told_in_band_and_by_the_shell(self, run: Run, code: int) -> None:
        assert run(["sh", "-c", f"exit {code}"]) == Ran(b"", b"", Exit(code), code)

    @pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2)])
    @pytest.mark.parametrize("as_text", [True, False])
    def test_a_signal_is_128_and_its_number_and_nobody_complains(
        self, run: Run, name: str, number: int, as_text: bool
    ) -> None:
        script = f"echo out; echo err >&2; kill -s {name} $$"
        expected = Ran(b"out\n", b"err\n", Exit(128 + number), 128 + number)
        assert run(script if as_text else ["sh", "-c", script]) == expected

    @pytest.mark.parametrize(
        "program", ["no-such-program", "./no-such-program", "/no/such/program", "", "cd"]
    )
    def test_a_program_that_is_not_there_is_missing(self, run: Run, program: str) -> None:
        ran = run([program, "argument"])
        assert (ran.exit, ran.shell_code) == (Exit(127, missing=True), 127)
        assert ran.err == f"{program}: not found\n".encode()

    def test_a_command_of_text_that_is_not_there_is_not_missing(self, run: Run) -> None:
        ran = run("no-such-program")
        assert ran.exit == Exit(127)
        assert b"not found" in ran.err

    def test_what_cannot_be_executed_is_126(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("#!/bin/sh\n")
        for program in ("./plain", "/"):
            ran = run([program])
            assert ran.exit == Exit(126)
            assert ran.err

    @pytest.mark.parametrize(
        "argument",
        [
            "",
            " ",
            "-n",
            "--",
            "it's",
            'a "b" c',
            "$HOME `id` $(id) ${x} !x",
            "a\nb\n",
            "\\",
            "\t*?[a-z]{1,2}",
            "{arguments} {0} {{err}}",
            "é中🙂",
            "\x01\x1b\x1e",
            "; exit 9 #",
        ],
    )
    def test_arguments_arrive_as_they_are(self, run: Run, argument: str) -> None:
        ran = run([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", argument, "last"])
        assert ran == Ran(f"{[argument, 'last']!a}\n".encode(), b"", Exit(0), 0)

    def test_text_is_for_the_shell_that_other_backends_have(self, run: Run) -> None:
        ran = run("echo \"$0\" $# && false || echo 'it is'")
        assert ran == Ran(b"/bin/sh 0\nit is\n", b"", Exit(0), 0)

    def test_the_input_is_the_commands(self, run: Run) -> None:
        assert run(["cat"], given=b"a\nb").out == b"a\nb"

    def test_both_outputs_keep_their_place(self, run: Run) -> None:
        assert run("printf out; printf err >&2") == Ran(b"out", b"err", Exit(0), 0)

    def test_a_profile_does_not_change_what_was_given(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / ".bash_profile").write_text(
            "export PATH=/nowhere GIVEN=changed LANG=changed OWN=profile\nunset GONE\necho() { :; }\n"
        )
        given = {
            "GIVEN": "a b\n'c' $d",
            "LANG": "C",
            "GONE": "is here",
            "EMPTY": "",
            "IFS": "a1",
            "n": "1",
        }
        ran = run(["env", "-0"], **given)
        seen = dict(entry.split("=", 1) for entry in ran.out.decode().split("\0") if entry)
        assert ran.exit == Exit(0)
        assert {name: seen.get(name) for name in given} == given
        assert seen["PATH"] == os.environ["PATH"]
        assert seen["HOME"] == str(tmp_path)
        assert seen["OWN"] == "profile"

    def test_a_function_of_a_profile_does_not_stand_in_for_a_program(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / ".bash_profile").write_text("printenv() { builtin echo instead; }\nno-program() { :; }\n")
        assert run(["printenv", "X"], X="mine").out == b"mine\n"
        assert run(["no-program"]).exit == Exit(127, missing=True)

    @pytest.mark.parametrize("name", ["pair", "err", "code", "word", "marker", "REPLY"])
    def test_a_variable_is_not_lost_to_one_of_the_wrapper(self, run: Run, name: str) -> None:
        assert run(["printenv", name], **{name: "mine"}) == Ran(b"mine\n", b"", Exit(0), 0)

    def test_a_profile_of_the_sandbox_that_fails_says_nothing_for_the_command(
        self, run: Run, tmp_path: Path
    ) -> None:
        (tmp_path / ".bash_profile").write_text("false\nset -u\ntrap 'echo trapped' EXIT\n")
        ran = run(["sh", "-c", "exit 4"])
        assert ran.exit == Exit(4)
        assert ran.err == b""

    def test_a_profile_of_the_users_is_not_read(self, run: Run, tmp_path: Path) -> None:
        for name in (".bash_profile", ".bash_login", ".profile", ".bashrc"):
            (tmp_path / name).write_text(f"touch {tmp_path}/was-read\nexit 0\n")
        hidden = {"HOME": str(tmp_path), "BASH_ENV": f"{tmp_path}/.bashrc"}
        ran = run(["sh", "-c", 'echo "$HOME $BASH_ENV"; exit 5'], hidden=hidden, **NO_PROFILE)
        assert (ran.out, ran.exit) == (f"{tmp_path} {tmp_path}/.bashrc\n".encode(), Exit(5))
        assert not (tmp_path / "was-read").exists()

    def test_a_hidden_variable_that_nobody_gave_is_not_there(self, run: Run, tmp_path: Path) -> None:
        ran = run(["env"], hidden={"HOME": str(tmp_path), "BASH_ENV": None}, **NO_PROFILE)
        assert f"HOME={tmp_path}".encode() in ran.out.splitlines()
        assert b"BASH_ENV" not in ran.out

    @pytest.mark.parametrize("value", ["it's", "$HOME `id`", "a\nb", "", " x "])
    def test_a_hidden_variable_has_its_value_as_it_is(self, run: Run, value: str, tmp_path: Path) -> None:
        hidden = {"HOME": str(tmp_path), "BASH_ENV": value}
        ran = run(["env", "-0"], hidden=hidden, **NO_PROFILE)
        assert f"BASH_ENV={value}".encode() in ran.out.split(b"\0")

    def test_a_variable_that_bash_keeps_for_itself_does_not_stop_the_command(self, run: Run) -> None:
        assert run(["echo", "runs"], UID="7", PPID="1", **{"a.b": "c"}) == Ran(b"runs\n", b"", Exit(0), 0)

    def test_no_file_of_the_wrapper_is_left_open_for_the_command(self, run: Run) -> None:
        ran = run([sys.executable, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"])
        assert ran.out == b"[0, 1, 2, 3]\n"  # the last one is the listing's own

    def test_a_command_that_has_a_status_line_of_its_own_lies_about_itself_only(self, run: Run) -> None:
        ran = run(f"printf '\\036{WORD} 0\\n' >&2; exit 7")
        assert ran.exit == Exit(0)
        assert ran.shell_code == 7

    def test_a_child_in_the_background_does_not_delay_the_status_line(self, tmp_path: Path) -> None:
        with subprocess.Popen(
            argv("sleep 60 & echo $!; exit 3"),
            env=environment(tmp_path, {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as shell:
            assert shell.stdout is not None
            assert shell.stderr is not None
            child = int(shell.stdout.readline())
            try:
                status = StatusFilter(WORD)
                while status.exit is None and (piece := os.read(shell.stderr.fileno(), 4096)):
                    status.feed(piece)
                assert status.exit == Exit(3)
                os.kill(child, 0)  # it is there still, and holds the pipes
            finally:
                os.kill(child, 9)
            assert shell.stderr.read() == b""

    def test_what_the_command_starts_is_under_its_number_wherever_it_goes(self, run: Run) -> None:
        ran = run("(setsid sh -c 'exec env -i cat /proc/self/limits' </dev/null & wait)")
        limits = re.search(rb"^Max file locks +(\S+) +(\S+)", ran.out, re.MULTILINE)
        assert limits is not None
        assert limits.groups() == (MARKER.encode(), MARKER.encode())

    def test_the_number_is_not_in_the_environment_of_a_command_that_has_it_as_a_limit(self, run: Run) -> None:
        ran = run(["env"])
        assert ran.exit == Exit(0)
        assert MARKER_VARIABLE.encode() not in ran.out
        assert MARKER.encode() not in ran.out

    def test_where_the_limit_cannot_be_set_the_variable_stays(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / ".bash_profile").write_text("ulimit() { return 1; }\n")
        assert f"{MARKER_VARIABLE}={MARKER}".encode() in run(["env"]).out.splitlines()
