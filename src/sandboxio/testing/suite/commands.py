"""What the suite runs: commands for a POSIX shell and pieces of Python, each of which can be overridden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = ["CommandProbes"]

Command = str | Sequence[str]


class CommandProbes:
    """Commands by what they do. Text is for the shell, lists are for programs."""

    blocked_tree_size: ClassVar[int] = 3
    """How many processes `cmd_block_tree` has."""

    blocked_code_size: ClassVar[int] = 2
    """How many processes of `code_block_tree` are started with the variables of the call."""

    language_without_interpreter: ClassVar[str | None] = "ruby"
    """A language that the template under test cannot run; `None` if there is no such thing."""

    def cmd_echo(self, text: str) -> Command:
        """Write `text` and a newline."""
        return ["printf", "%s\\n", text]

    def cmd_stderr(self, text: str) -> Command:
        """Write `text` to standard error."""
        return f"printf '%s' '{text}' >&2"

    def cmd_bytes(self, data: bytes) -> Command:
        """Write exactly these bytes."""
        return f"printf '{_octal(data)}'"

    def cmd_split_bytes(self, first: bytes, second: bytes) -> Command:
        """Write some bytes, pause, and write some more."""
        return f"printf '{_octal(first)}'; sleep 0.3; printf '{_octal(second)}'"

    def cmd_repeat(self, text: str, count: int) -> Command:
        """Write `text` and a newline `count` times."""
        return f"yes '{text}' | head -n {count}"

    def cmd_exit(self, code: int) -> Command:
        """End with this exit code."""
        return f"exit {code}"

    def cmd_signal(self, number: int) -> Command:
        """End by this signal."""
        return f"kill -{number} $$"

    def cmd_hang(self, seconds: int = 300) -> Command:
        """Run for so long, with nothing to do and nothing to say."""
        return ["sleep", str(seconds)]

    def cmd_echo_then_hang(self, text: str, seconds: int = 300) -> Command:
        """Write `text`, then run for so long."""
        return f"printf '%s\\n' '{text}'; sleep {seconds}"

    def cmd_echo_later(self, text: str, seconds: float) -> Command:
        """Pause, then write `text`."""
        return f"sleep {seconds}; printf '%s\\n' '{text}'"

    def cmd_hang_tree(self, seconds: int = 300) -> Command:
        """Three processes that run for so long, one of them in a session of its own."""
        return f"(setsid sleep {seconds} &); sleep {seconds} & wait"

    def cmd_block(self) -> Command:
        """Wait for something that never comes."""
        return ["tail", "-f", "/dev/null"]

    def cmd_block_tree(self) -> Command:
        """`blocked_tree_size` processes that wait for ever, one of them in a session of its own."""
        return "(setsid tail -f /dev/null &); tail -f /dev/null & wait"

    def cmd_echo_then_block_tree(self, text: str) -> Command:
        """Write `text`, then do as `cmd_block_tree`."""
        return f"printf '%s\\n' '{text}'; {self.cmd_block_tree()}"

    def cmd_leave_child(self, text: str, *, holding_output: bool) -> Command:
        """Start a child that blocks in the background, write `text`, and end."""
        child = "tail -f /dev/null" if holding_output else "tail -f /dev/null >/dev/null 2>&1"
        return f"{child} & printf '%s\\n' '{text}'"

    def cmd_flood(self, size: int) -> Command:
        """Write so many bytes without a newline, as fast as it can."""
        return f"head -c {size} /dev/zero | tr '\\0' x"

    def cmd_flood_stderr(self, size: int) -> Command:
        """The same on standard error."""
        return f"head -c {size} /dev/zero | tr '\\0' x >&2"

    def cmd_flood_then_touch(self, size: int, path: str) -> Command:
        """Write so many bytes, and make a file once all of them have been taken."""
        return f"head -c {size} /dev/zero && touch {path}"

    def cmd_count_lines_on_both(self, count: int) -> Command:
        """Write the numbers up to `count` to both streams, line by line."""
        numbers = " ".join(str(number) for number in range(count))
        return f"for n in {numbers}; do echo out $n; echo err $n >&2; done"

    def cmd_cat(self) -> Command:
        """Copy standard input to standard output."""
        return ["cat"]

    def cmd_cat_later(self, seconds: float) -> Command:
        """Pause, then copy standard input to standard output."""
        return f"sleep {seconds}; cat"

    def cmd_ignore_input(self) -> Command:
        """End at once, reading nothing."""
        return ["true"]

    def cmd_pwd(self) -> Command:
        """Write the working folder and a newline."""
        return "pwd"

    def cmd_print_variable(self, name: str) -> Command:
        """Write the value of an environment variable."""
        return f"printf '%s' \"${name}\""

    def cmd_print_arguments(self, *arguments: str) -> Command:
        """Write each argument on a line of its own, without any shell."""
        return ["printf", "%s\\n", *arguments]

    def cmd_pipe(self, text: str) -> Command:
        """A line that works only in a shell: a pipe that writes `text`."""
        return f"echo '{text}' | cat"

    def cmd_missing_program(self) -> Command:
        """A program that does not exist."""
        return ["sandboxio-there-is-no-such-program"]

    def cmd_make_script(self, path: str) -> Command:
        """Make an executable file at `path`."""
        return f"printf '#!/bin/sh\\nexit 0\\n' > {path} && chmod 755 {path}"

    def cmd_mode(self, path: str) -> Command:
        """End with 0 only if `path` can be executed."""
        return f"test -x {path}"

    def cmd_symlink(self, target: str, path: str) -> Command:
        """Make a symbolic link at `path`."""
        return ["ln", "-s", target, path]

    def cmd_fifo(self, path: str) -> Command:
        """Make a named pipe at `path`."""
        return ["mkfifo", path]

    def cmd_hog_memory(self) -> Command:
        """Take memory without bound, as the leader itself."""
        return ["tail", "/dev/zero"]

    def cmd_hog_memory_behind_shell(self) -> Command:
        """Take memory without bound in a child, then end with 0."""
        return "tail /dev/zero; echo survived"

    def cmd_fill_disk(self, size: int, path: str) -> Command:
        """Write a file of so many bytes."""
        return f"head -c {size} /dev/zero > {path}"

    def cmd_connect(self, host: str, port: int) -> Command:
        """Open a TCP connection, and write `reached` only if it opened."""
        return ["python3", "-c", self.code_connect(host, port)]

    def code_connect(self, host: str, port: int) -> str:
        """The same as code."""
        return (
            "import socket\n"
            f"socket.create_connection(({host!r}, {port}), timeout=3).close()\n"
            "print('reached')\n"
        )

    def code_print(self, text: str) -> str:
        """Write `text` and a newline."""
        return f"print({text!r})"

    def code_stderr(self, text: str) -> str:
        """Write `text` to standard error."""
        return f"import sys\nsys.stderr.write({text!r})"

    def code_exit(self, code: int) -> str:
        """End with this exit code."""
        return f"import sys\nsys.exit({code})"

    def code_fail(self, message: str) -> str:
        """End by an error that nobody handles."""
        return f"raise ValueError({message!r})"

    def code_assign(self, name: str, value: int) -> str:
        """Set a variable of the program."""
        return f"{name} = {value}"

    def code_show(self, name: str) -> str:
        """Write a variable of the program; an error if there is none."""
        return f"print({name})"

    def code_print_variable(self, name: str) -> str:
        """Write an environment variable."""
        return f"import os\nprint(os.environ.get({name!r}))"

    def code_read_input(self) -> str:
        """Write what standard input holds, as a literal."""
        return "import sys\nprint(repr(sys.stdin.read()))"

    def code_hang(self, seconds: int = 300) -> str:
        """Run for so long."""
        return f"import time\ntime.sleep({seconds})"

    def code_print_then_hang(self, text: str, seconds: int = 300) -> str:
        """Write `text`, then run for so long."""
        return f"import time\nprint({text!r}, flush=True)\ntime.sleep({seconds})"

    def code_block_tree(self) -> str:
        """Two processes that wait for ever, the second in a session of its own."""
        return "import subprocess\nsubprocess.run(['tail', '-f', '/dev/null'], start_new_session=True)"

    def code_of_size(self, size: int, text: str) -> str:
        """Code of at least so many bytes that writes `text`."""
        return f"#{'x' * size}\nprint({text!r})"


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)
