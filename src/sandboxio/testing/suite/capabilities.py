"""Capability honesty: what is not declared is refused, never ignored and never pretended."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxio.errors import CapabilityNotSupported
from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.suite.base import SuiteBase, names_in, needs, undeclared

__all__ = ["CapabilityTests"]


class CapabilityTests(SuiteBase):
    """Rows on `Capability`; those on policies and caps are with `network` and `resources`."""

    async def test_a_sandbox_declares_no_more_than_its_backend(
        self, sandbox: AsyncSandbox, backend: Backend
    ) -> None:
        assert sandbox.capabilities in backend.capabilities

    async def test_a_capability_is_declared_with_what_it_stands_on(self, declared: Capability) -> None:
        stands_on = {
            Capability.STATEFUL_CODE: Capability.RUN_CODE,
            Capability.STREAMING: Capability.RUN_COMMAND,
            Capability.UPLOAD_DOWNLOAD: Capability.FILESYSTEM,
            Capability.NETWORK_ALLOWLIST: Capability.NETWORK_POLICY,
            Capability.EGRESS_LEARN: Capability.NETWORK_POLICY,
        }
        for flag, base in stands_on.items():
            assert flag not in declared or base in declared, f"{flag.name} without {base.name}"

    @undeclared(Capability.RUN_COMMAND)
    async def test_run_that_is_not_declared_is_not_supported(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CapabilityNotSupported, match="RUN_COMMAND"):
            await sandbox.run(self.cmd_echo("x"))

    @undeclared(Capability.RUN_CODE)
    async def test_run_code_that_is_not_declared_is_not_supported(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CapabilityNotSupported, match="RUN_CODE"):
            await sandbox.run_code(self.code_print("x"))

    @undeclared(Capability.STREAMING)
    async def test_stream_that_is_not_declared_is_not_supported(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CapabilityNotSupported, match="STREAMING"):
            async with sandbox.stream(self.cmd_echo("x")):
                pass

    @undeclared(Capability.FILESYSTEM)
    async def test_files_that_are_not_declared_are_not_supported(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CapabilityNotSupported, match="FILESYSTEM"):
            await sandbox.files.ls()

    @needs(Capability.FILESYSTEM)
    @undeclared(Capability.UPLOAD_DOWNLOAD)
    async def test_uploads_that_are_not_declared_are_not_supported(
        self, sandbox: AsyncSandbox, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with pytest.raises(CapabilityNotSupported, match="UPLOAD_DOWNLOAD"):
            await sandbox.files.upload(tmp_path / "file", "file")

    @needs(Capability.FILESYSTEM)
    @undeclared(Capability.UPLOAD_DOWNLOAD)
    async def test_downloads_that_are_not_declared_are_not_supported(
        self, sandbox: AsyncSandbox, tmp_path: Path
    ) -> None:
        with pytest.raises(CapabilityNotSupported, match="UPLOAD_DOWNLOAD"):
            await sandbox.files.download(".", tmp_path / "local")
        assert names_in(tmp_path) == []
