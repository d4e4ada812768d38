"""Secrets: in the process's environment and nowhere else."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from sandboxio.errors import ExecutionTimeout, PathNotFound, SandboxError
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import RecordingSink, SuiteBase, needs

__all__ = ["SecretTests"]


class SecretTests(SuiteBase):
    """Rows on `secrets=`."""

    @needs(Capability.RUN_COMMAND)
    async def test_a_secret_reaches_the_environment_of_a_command(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            result = await sandbox.run(self.cmd_print_variable("API_TOKEN"))
        assert result.stdout == secret

    @needs(Capability.RUN_CODE)
    async def test_a_secret_reaches_the_environment_of_code(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            result = await sandbox.run_code(self.code_print_variable("API_TOKEN"))
        assert result.stdout == f"{secret}\n"

    async def test_a_secret_is_in_no_repr(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            for part in (sandbox, sandbox.metadata, backend):
                assert secret not in repr(part)

    @needs(Capability.RUN_COMMAND)
    async def test_a_secret_is_in_no_audit_event(self, backend: Backend, events: RecordingSink) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            await sandbox.run(self.cmd_echo(f"token={secret}"))
        recorded = [json.dumps(event.as_dict()) for event in events.of(sandbox)]
        assert any("token=" in event for event in recorded)
        assert not any(secret in event for event in recorded)

    @needs(Capability.RUN_COMMAND)
    async def test_a_secret_is_not_in_what_the_provider_shows(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            await sandbox.run(self.cmd_print_variable("API_TOKEN"))
            shown = await self.provider_view(sandbox)
        assert sandbox.id[:12] in shown
        assert secret not in shown

    async def test_a_secret_is_in_no_label(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            labels = await self.provider_labels(sandbox)
        assert labels
        assert secret not in repr(dict(labels))

    @needs(Capability.FILESYSTEM)
    async def test_a_secret_is_in_no_message_of_a_file_error(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            with pytest.raises(PathNotFound) as caught:
                await sandbox.files.read(f"missing-{secret}")
        assert "missing-" in str(caught.value)
        _assert_clean(caught.value, secret)

    @needs(Capability.RUN_COMMAND)
    async def test_a_secret_is_in_no_message_of_a_failed_execution(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            with pytest.raises(PathNotFound) as missing:
                await sandbox.run(self.cmd_pwd(), cwd=f"/missing-{secret}")
            with pytest.raises(ExecutionTimeout) as late:
                await sandbox.run(self.cmd_hang(), timeout=0.2, env={"COPY": secret})
        _assert_clean(missing.value, secret)
        _assert_clean(late.value, secret)

    @needs(Capability.RUN_COMMAND)
    async def test_what_the_sandboxed_code_prints_is_not_altered(self, backend: Backend) -> None:
        secret = _secret()
        async with await self.create(backend, secrets={"API_TOKEN": secret}) as sandbox:
            result = await sandbox.run(self.cmd_echo(f"token={secret}"))
        assert result.stdout == f"token={secret}\n"

    @needs(Capability.RUN_COMMAND)
    async def test_a_secret_of_one_sandbox_is_not_in_another(
        self, backend: Backend, sandbox: AsyncSandbox
    ) -> None:
        async with await self.create(backend, secrets={"ONLY_THERE": _secret()}):
            assert (await sandbox.run(self.cmd_print_variable("ONLY_THERE"))).stdout == ""


def _secret() -> str:
    return f"sk-{uuid4().hex}"


def _assert_clean(error: SandboxError, secret: str) -> None:
    """No secret in an error, its notes and everything it was raised from."""
    current: BaseException | None = error
    while current is not None:
        notes = getattr(current, "__notes__", ())
        for text in (str(current), repr(current), *notes):
            assert secret not in text
        current = current.__cause__ or current.__context__
