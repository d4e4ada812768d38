"""Secrets of the command line in what it shows."""

from __future__ import annotations

import pytest

from sandboxio import ConfigurationError
from sandboxio.cli.output import Output

AWKWARD = "-----BEGIN KEY-----\nMII'x\"y\\z\té\x1b\n-----END KEY-----"


def test_an_error_in_one_line_is_shown_without_the_lines_of_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = Output(as_json=True)
    output.keep_out([AWKWARD])
    output.error(ConfigurationError(f"the folder {AWKWARD} is none"))
    output.finish(ok=False)
    assert "MII" not in "".join(capsys.readouterr())
