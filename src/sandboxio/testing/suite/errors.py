"""Errors: ours alone, with a code, a fix and a page, and with what they were raised from."""

from __future__ import annotations

import pytest

from sandboxio.errors import (
    AuthError,
    ConnectError,
    CreationError,
    ExecutionTimeout,
    SandboxError,
    SandboxGone,
)
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, needs, unique

__all__ = ["ErrorTests"]


class ErrorTests(SuiteBase):
    """Rows on what a failure looks like."""

    @needs(Capability.RUN_COMMAND)
    async def test_an_error_is_three_lines_with_code_fix_and_page(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(ExecutionTimeout) as caught:
            await sandbox.run(self.cmd_hang(), timeout=0.2)
        lines = str(caught.value).splitlines()
        assert len(lines) == 3
        assert lines[0].startswith("[SBX_E1302] ")
        assert lines[1].startswith("Fix: ")
        assert lines[2] == "Docs: https://docs.sandboxio.dev/errors/SBX_E1302"

    @needs(Capability.RUN_COMMAND)
    async def test_no_error_is_one_of_pythons_own(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(SandboxError) as caught:
            await sandbox.run(self.cmd_hang(), timeout=0.2)
        assert not isinstance(caught.value, (TimeoutError, OSError, ValueError, RuntimeError))

    async def test_creating_while_the_provider_is_unreachable_says_so(self, backend: Backend) -> None:
        async with self.provider_failure(backend):
            with pytest.raises((CreationError, ConnectError)) as caught:
                await self.create(backend)
        assert caught.value.hint
        assert caught.value.__cause__ is not None

    async def test_connecting_while_the_provider_is_unreachable_says_so(self, backend: Backend) -> None:
        async with self.provider_failure(backend):
            with pytest.raises(ConnectError) as caught:
                await backend.connect("any")
        assert not isinstance(caught.value, SandboxGone)
        assert caught.value.__cause__ is not None

    @needs(Capability.RUN_COMMAND)
    async def test_running_while_the_provider_is_unreachable_is_a_connect_error(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        async with self.provider_failure(backend):
            with pytest.raises(ConnectError) as caught:
                await fresh.run(self.cmd_echo("x"))
        assert caught.value.__cause__ is not None

    @needs(Capability.RUN_COMMAND)
    async def test_a_sandbox_is_usable_once_the_provider_is_back(
        self, backend: Backend, fresh: AsyncSandbox
    ) -> None:
        async with self.provider_failure(backend):
            with pytest.raises(ConnectError):
                await fresh.run(self.cmd_echo("x"))
        assert (await fresh.run(self.cmd_echo("back"))).stdout == "back\n"

    async def test_a_missing_credential_is_an_auth_error_that_names_the_variable(self) -> None:
        async with self.missing_credential() as (backend, variable):
            with pytest.raises(AuthError) as caught:
                await self.create(backend)
        assert variable in str(caught.value)

    async def test_connecting_to_what_never_was_is_sandbox_gone(self, backend: Backend) -> None:
        with pytest.raises(SandboxGone):
            await backend.connect(unique("never"))
