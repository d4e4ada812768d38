"""Output: bounded, decoded with replacement, and otherwise untouched."""

from __future__ import annotations

import sys

import pytest

from sandboxio.models import Capability
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.suite.base import SuiteBase, needs

__all__ = ["OutputTests"]

_RUN = Capability.RUN_COMMAND
_CAP = 16 * 1024 * 1024


class OutputTests(SuiteBase):
    """Rows on what `run` keeps."""

    @needs(_RUN)
    async def test_output_below_the_cap_is_whole(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_flood(1_000_003), timeout=60)
        assert (len(result.stdout), result.truncated) == (1_000_003, False)

    @needs(_RUN)
    async def test_output_of_exactly_the_cap_is_whole(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_flood(_CAP), timeout=60)
        assert (len(result.stdout), result.truncated) == (_CAP, False)

    @needs(_RUN)
    async def test_200_megabytes_without_a_newline_are_cut_at_the_cap_in_bounded_memory(
        self, sandbox: AsyncSandbox
    ) -> None:
        before = _peak_memory_bytes()
        result = await sandbox.run(self.cmd_flood(200_000_000), timeout=120)
        assert (result.exit_code, len(result.stdout), result.truncated) == (0, _CAP, True)
        assert _peak_memory_bytes() - before < 150_000_000

    @needs(_RUN)
    async def test_standard_error_has_a_cap_of_its_own(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_flood_stderr(_CAP + 1), timeout=60)
        assert (len(result.stderr), result.stdout, result.truncated) == (_CAP, "", True)

    @needs(_RUN)
    async def test_many_wide_characters_come_through_whole(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_repeat("☕", 100_000), timeout=60)
        assert result.stdout == "☕\n" * 100_000

    @needs(_RUN)
    async def test_a_character_written_in_two_parts_is_one_character(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.run(self.cmd_split_bytes(b"\xe2", b"\x98\x95"), timeout=20)
        assert result.stdout == "☕"

    @needs(_RUN)
    @pytest.mark.parametrize(
        ("data", "text"),
        [(b"a\xffb", "a\ufffdb"), (b"\xe2\x98", "\ufffd"), (b"\xc3\x28", "\ufffd(")],
        ids=["invalid", "cut", "broken"],
    )
    async def test_bytes_that_are_not_utf_8_are_replaced(
        self, sandbox: AsyncSandbox, data: bytes, text: str
    ) -> None:
        assert (await sandbox.run(self.cmd_bytes(data))).stdout == text

    @needs(_RUN)
    async def test_line_ends_and_trailing_space_are_kept(self, sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run(self.cmd_bytes(b" a\r\n\r\n \n"))).stdout == " a\r\n\r\n \n"


def _peak_memory_bytes() -> int:
    if sys.platform == "win32":
        pytest.skip("the peak of a process's memory is not known on Windows")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
