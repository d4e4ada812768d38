"""Code: clean starts, contexts that last, languages that are there and languages that are not."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.errors import CapabilityNotSupported, ConfigurationError, ExecutionTimeout
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, undeclared, unique

__all__ = ["CodeTests"]

_CODE = Capability.RUN_CODE
_CONTEXTS = Capability.RUN_CODE | Capability.STATEFUL_CODE


class CodeTests(SuiteBase):
    """Rows on `run_code`."""

    @needs(_CODE)
    async def test_code_returns_what_it_wrote(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run_code(self.code_print("hello ☕"))
        assert (result.exit_code, result.stdout, result.stderr) == (0, "hello ☕\n", "")

    @needs(_CODE)
    async def test_standard_error_of_code_is_apart(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run_code(self.code_stderr("oops"))
        assert (result.stdout, result.stderr) == ("", "oops")

    @needs(_CODE)
    async def test_the_exit_code_of_code_comes_through(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run_code(self.code_exit(3))).exit_code == 3

    @needs(_CODE)
    async def test_code_that_fails_says_so_on_stderr_and_by_its_exit_code(
        self, sandbox: AsyncSandbox
    ) -> None:
        result = await sandbox.run_code(self.code_fail("unlucky"))
        assert not result.ok
        assert "unlucky" in result.stderr

    @needs(_CODE)
    async def test_code_starts_clean_every_time(self, sandbox: AsyncSandbox) -> None:
        await sandbox.run_code(self.code_assign("left_over", 1))
        result = await sandbox.run_code(self.code_show("left_over"))
        assert not result.ok
        assert "left_over" in result.stderr

    @needs(_CODE)
    async def test_code_may_be_larger_than_any_argument(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run_code(self.code_of_size(200_000, "all of it"))
        assert result.stdout == "all of it\n"

    @needs(_CODE)
    async def test_code_reads_end_of_file_at_once(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run_code(self.code_read_input(), timeout=20)).stdout == "''\n"

    @needs(_CODE)
    async def test_a_variable_of_the_call_reaches_code(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run_code(self.code_print_variable("SBX_ONE"), env={"SBX_ONE": "a b ☕"})
        assert result.stdout == "a b ☕\n"

    @needs(_CODE)
    async def test_variables_given_at_creation_reach_code(self, backend: Backend) -> None:
        async with await self.create(backend, env={"SBX_ALWAYS": "there"}) as sandbox:
            result = await sandbox.run_code(self.code_print_variable("SBX_ALWAYS"))
            assert result.stdout == "there\n"

    @needs(_CODE)
    async def test_an_unknown_language_is_not_supported(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CapabilityNotSupported):
            await sandbox.run_code("x", language="sandboxio-no-such-language")

    @needs(_CODE)
    async def test_a_language_without_an_interpreter_is_not_supported_and_says_the_fix(
        self, sandbox: AsyncSandbox
    ) -> None:
        language = self.language_without_interpreter
        if language is None:
            pytest.skip("every language has its interpreter here")
        with pytest.raises(CapabilityNotSupported) as caught:
            await sandbox.run_code("x", language=language)
        assert language in caught.value.message
        assert caught.value.hint

    @needs(_CODE)
    @pytest.mark.parametrize("code", ["print(1)\0", "print('\ud800')"], ids=["nul", "surrogate"])
    async def test_what_cannot_be_code_is_refused(self, sandbox: AsyncSandbox, code: str) -> None:
        with pytest.raises(ConfigurationError):
            await sandbox.run_code(code)

    @needs(_CODE)
    async def test_executions_of_code_at_the_same_time_are_apart(self, sandbox: AsyncSandbox) -> None:
        outputs: dict[int, str] = {}

        async def execute(number: int) -> None:
            outputs[number] = (await sandbox.run_code(self.code_print(f"number {number}"))).stdout

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(execute, number)
        assert outputs == {number: f"number {number}\n" for number in range(5)}

    @needs(_CONTEXTS)
    async def test_a_context_keeps_its_state(self, sandbox: AsyncSandbox) -> None:
        context = unique("context")
        await sandbox.run_code(self.code_assign("kept", 42), context_id=context)
        assert (await sandbox.run_code(self.code_show("kept"), context_id=context)).stdout == "42\n"

    @needs(_CONTEXTS)
    async def test_contexts_do_not_see_each_other(self, sandbox: AsyncSandbox) -> None:
        await sandbox.run_code(self.code_assign("private", 1), context_id=unique("one"))
        result = await sandbox.run_code(self.code_show("private"), context_id=unique("two"))
        assert not result.ok

    @needs(_CONTEXTS)
    async def test_code_without_a_context_does_not_see_one(self, sandbox: AsyncSandbox) -> None:
        await sandbox.run_code(self.code_assign("private", 1), context_id=unique("context"))
        assert not (await sandbox.run_code(self.code_show("private"))).ok

    @needs(_CONTEXTS)
    async def test_a_context_survives_a_cell_that_fails(self, sandbox: AsyncSandbox) -> None:
        context = unique("context")
        await sandbox.run_code(self.code_assign("kept", 42), context_id=context)
        assert not (await sandbox.run_code(self.code_fail("unlucky"), context_id=context)).ok
        assert (await sandbox.run_code(self.code_show("kept"), context_id=context)).stdout == "42\n"

    @needs(_CONTEXTS)
    async def test_a_context_that_lost_its_state_says_so_once(self, sandbox: AsyncSandbox) -> None:
        context = unique("context")
        await sandbox.run_code(self.code_assign("kept", 42), context_id=context)
        with pytest.raises(ExecutionTimeout):
            await sandbox.run_code(self.code_hang(), context_id=context, timeout=1)
        after = await sandbox.run_code(self.code_show("kept"), context_id=context)
        if after.stdout != "42\n":
            assert "context" in after.stderr
            assert "state" in after.stderr
        again = await sandbox.run_code(self.code_print("on"), context_id=context)
        assert (again.stdout, again.stderr) == ("on\n", "")

    @needs(_CODE)
    @undeclared(Capability.STATEFUL_CODE)
    async def test_a_context_is_not_supported_where_contexts_are_not_declared(
        self, sandbox: AsyncSandbox
    ) -> None:
        with pytest.raises(CapabilityNotSupported, match="STATEFUL_CODE"):
            await sandbox.run_code(self.code_print("x"), context_id="any")
