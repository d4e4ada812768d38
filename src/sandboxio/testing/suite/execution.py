"""Commands: what they are given, what they give back, and when they are over."""

from __future__ import annotations

import pytest

from sandboxio.errors import ConfigurationError, ExecutionError, PathNotFound
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["ExecutionTests"]

_RUN = Capability.RUN_COMMAND


class ExecutionTests(SuiteBase):
    """Rows on `run`: results, arguments, environment, folder and input."""

    @needs(_RUN)
    async def test_run_returns_what_was_written(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_echo("hello"))
        assert (result.exit_code, result.stdout, result.stderr) == (0, "hello\n", "")

    @needs(_RUN)
    async def test_standard_error_is_apart_from_standard_output(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_stderr("oops"))
        assert (result.stdout, result.stderr) == ("", "oops")

    @needs(_RUN)
    @pytest.mark.parametrize("code", [1, 3, 124, 125, 137, 255])
    async def test_every_exit_code_comes_through_as_it_is(self, sandbox: AsyncSandbox, code: int) -> None:
        assert (await sandbox.run(self.cmd_exit(code))).exit_code == code

    @needs(_RUN)
    @pytest.mark.parametrize("number", [9, 15])
    async def test_an_end_by_a_signal_is_128_and_its_number(self, sandbox: AsyncSandbox, number: int) -> None:
        assert (await sandbox.run(self.cmd_signal(number))).exit_code == 128 + number

    @needs(_RUN)
    async def test_raise_for_status_raises_what_the_exit_code_says(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_exit(4))
        with pytest.raises(ExecutionError, match="4") as caught:
            result.raise_for_status()
        assert caught.value.result == result

    @needs(_RUN)
    async def test_a_list_never_passes_through_a_shell(self, sandbox: AsyncSandbox) -> None:
        arguments = ("$HOME", "a b", "*", "; echo no", "`echo no`", "'\"", "")
        result = await sandbox.run(self.cmd_print_arguments(*arguments))
        assert result.stdout.split("\n")[:-1] == list(arguments)

    @needs(_RUN)
    async def test_text_passes_through_the_shell(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_pipe("through"))).stdout == "through\n"

    @needs(_RUN)
    async def test_a_missing_program_is_exit_code_127_with_the_reason_on_stderr(
        self, sandbox: AsyncSandbox
    ) -> None:
        result = await sandbox.run(self.cmd_missing_program())
        assert result.exit_code == 127
        assert "not found" in result.stderr.lower() or "no such file" in result.stderr.lower()

    @needs(_RUN, Capability.FILESYSTEM)
    async def test_a_file_that_cannot_be_executed_is_exit_code_126_with_the_reason_on_stderr(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        await sandbox.files.write(f"{folder}/plain", "just text")
        result = await sandbox.run([f"./{folder}/plain"])
        assert result.exit_code == 126
        assert result.stderr

    @needs(_RUN)
    async def test_a_missing_working_folder_is_path_not_found(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(PathNotFound):
            await sandbox.run(self.cmd_pwd(), cwd="/there/is/no/such/folder")

    @needs(_RUN)
    async def test_a_command_runs_in_the_folder_that_was_given(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_pwd(), cwd="/tmp")).stdout == "/tmp\n"

    @needs(_RUN, Capability.FILESYSTEM)
    async def test_a_relative_folder_starts_at_the_sandboxs_own(
        self, sandbox: AsyncSandbox, folder: str
    ) -> None:
        home = (await sandbox.run(self.cmd_pwd())).stdout.rstrip("\n")
        assert (await sandbox.run(self.cmd_pwd(), cwd=folder)).stdout == f"{home}/{folder}\n"

    @needs(_RUN)
    async def test_a_variable_of_the_call_reaches_the_command(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_print_variable("SBX_ONE"), env={"SBX_ONE": "a 'b' $c ☕"})
        assert result.stdout == "a 'b' $c ☕"

    @needs(_RUN)
    async def test_a_variable_of_the_call_is_gone_with_it(self, sandbox: AsyncSandbox) -> None:
        await sandbox.run(self.cmd_print_variable("SBX_ONCE"), env={"SBX_ONCE": "1"})
        assert (await sandbox.run(self.cmd_print_variable("SBX_ONCE"))).stdout == ""

    @needs(_RUN)
    async def test_variables_given_at_creation_reach_every_command(self, backend: Backend) -> None:
        async with await self.create(backend, env={"SBX_ALWAYS": "there"}) as sandbox:
            assert (await sandbox.run(self.cmd_print_variable("SBX_ALWAYS"))).stdout == "there"

    @needs(_RUN)
    async def test_a_variable_of_the_call_hides_one_given_at_creation(self, backend: Backend) -> None:
        async with await self.create(backend, env={"SBX_BOTH": "creation"}) as sandbox:
            result = await sandbox.run(self.cmd_print_variable("SBX_BOTH"), env={"SBX_BOTH": "call"})
            assert result.stdout == "call"

    @needs(_RUN)
    async def test_without_input_a_command_reads_end_of_file_at_once(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_cat(), timeout=20)
        assert (result.exit_code, result.stdout) == (0, "")

    @needs(_RUN)
    async def test_input_reaches_the_command_and_ends(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_cat(), stdin=b"abc", timeout=20)
        assert (result.exit_code, result.stdout) == (0, "abc")

    @needs(_RUN)
    async def test_text_input_is_utf_8(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_cat(), stdin="☕", timeout=20)).stdout == "☕"

    @needs(_RUN)
    async def test_empty_input_is_end_of_file_at_once(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_cat(), stdin=b"", timeout=20)).stdout == ""

    @needs(_RUN)
    async def test_input_larger_than_every_pipe_is_echoed_whole(self, sandbox: AsyncSandbox) -> None:
        text = "0123456789abcdef" * 65536
        assert (await sandbox.run(self.cmd_cat(), stdin=text, timeout=60)).stdout == text

    @needs(_RUN)
    async def test_input_that_nobody_reads_does_not_delay_the_end(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_ignore_input(), stdin=b"x" * 1_048_576, timeout=20)
        assert result.exit_code == 0

    @needs(_RUN)
    @pytest.mark.parametrize(
        "command",
        [[], [""], ["printf", "a\0b"], "printf 'a\0b'", ["printf", "\ud800"], "printf '\ud800'"],
        ids=["empty-list", "empty-name", "nul", "nul-text", "surrogate", "surrogate-text"],
    )
    async def test_what_cannot_be_a_command_is_refused(
        self, sandbox: AsyncSandbox, command: str | list[str]
    ) -> None:
        with pytest.raises(ConfigurationError):
            await sandbox.run(command)

    @needs(_RUN)
    @pytest.mark.parametrize(
        "env",
        [
            {"": "x"},
            {"A=B": "x"},
            {"A": "x\0"},
            {"A\0": "x"},
            {"a.b": "x"},
            {"x-y": "x"},
            {"1A": "x"},
            {"É": "x"},
        ],
        ids=["empty", "equals", "nul", "nul-name", "dot", "dash", "digit", "not-ascii"],
    )
    async def test_what_cannot_be_a_variable_is_refused(
        self, sandbox: AsyncSandbox, env: dict[str, str]
    ) -> None:
        with pytest.raises(ConfigurationError):
            await sandbox.run(self.cmd_echo("x"), env=env)

    @needs(_RUN)
    async def test_the_meter_tells_the_backend_and_a_time(self, sandbox: AsyncSandbox) -> None:
        meter = (await sandbox.run(self.cmd_echo("x"))).meter
        assert meter is not None
        assert meter.backend == sandbox.backend
        assert 0 <= meter.duration_ms < 60_000

    @needs(_RUN)
    async def test_a_background_child_does_not_delay_the_result(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        command = self.cmd_leave_child("done", holding_output=True)
        result = await sandbox.run(command, env=self.marked(marker), timeout=20)
        assert (result.exit_code, result.stdout) == (0, "done\n")

    @needs(_RUN)
    async def test_a_background_child_lives_on_after_its_leader(self, sandbox: AsyncSandbox) -> None:
        marker = unique("marker")
        command = self.cmd_leave_child("done", holding_output=False)
        await sandbox.run(command, env=self.marked(marker), timeout=20)
        assert await self.count_processes(sandbox, marker) == 1

    @needs(_RUN)
    async def test_a_background_child_dies_with_the_sandbox(self, backend: Backend) -> None:
        labels = {"purpose": unique("child")}
        async with await self.create(backend, metadata=labels) as sandbox:
            await sandbox.run(self.cmd_leave_child("done", holding_output=True), timeout=20)
        assert await self.count_sandboxes(backend, labels) == 0
