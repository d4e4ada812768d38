"""What every adapter checks before anything is sent: commands, variables, paths and times."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from sandboxio.errors import ConfigurationError
from sandboxio.models import shown

__all__ = [
    "absolute_path",
    "checked_bound",
    "checked_code",
    "checked_command",
    "checked_environment",
    "checked_input",
    "checked_language",
    "checked_metadata",
    "checked_template",
    "checked_timeout",
    "require_fitting",
]


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_SECONDS: Final = 100 * 365.25 * 24 * 3600

ARGUMENT_LIMIT_BYTES: Final = 128 * 1024 - 1
"""The longest argument, or variable with its name, that Linux passes to a program."""


def _checked_text(what: str, value: Any, *, errors: str = "strict") -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{what} is {type(value).__name__}, not text", hint=f"give {what} as str")
    if "\0" in value:
        raise ConfigurationError(f"{what} holds a NUL character", hint="remove the NUL character")
    try:
        value.encode(errors=errors)
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"{what} holds a lone surrogate, which no UTF-8 text can",
            hint='encode the text first, for example with errors="replace"',
        ) from None
    return value


def checked_bound(what: str, bound: Any, most: int) -> int:
    """A bound on bytes; `None` is the most that there can be.

    Raises:
        ConfigurationError: It is no whole number, or none between 0 and `most`.
    """
    if bound is None:
        return most
    if isinstance(bound, bool) or not isinstance(bound, int) or not 0 <= bound <= most:
        raise ConfigurationError(
            f"{what} is {shown(bound)}, not a number of bytes from 0 to {most}",
            hint=f"give {what} as an int, or leave it out",
        )
    return bound


def checked_command(cmd: Any) -> str | tuple[str, ...]:
    """A command as it goes to a driver.

    Raises:
        ConfigurationError: It is empty, of a wrong type, or holds what no argument can.
    """
    if isinstance(cmd, str):
        if not cmd.strip():
            raise ConfigurationError("the command is empty", hint="give a line for the shell")
        return _checked_text("the command", cmd)
    if not isinstance(cmd, Sequence) or isinstance(cmd, (bytes, bytearray, memoryview)):
        raise ConfigurationError(
            "the command is neither a list of str nor a str",
            hint="give a list of str, or a str for the sandbox's shell",
        )
    argv = tuple(_checked_text("a command argument", argument) for argument in cast(Sequence[object], cmd))
    if not argv or not argv[0]:
        raise ConfigurationError("the command names no program", hint="give a program first")
    if argv[0].startswith("-"):
        raise ConfigurationError(
            "the program's name starts with a dash, which shells take for an option",
            hint="give the program's path, such as ./-name",
        )
    return argv


def checked_code(code: object) -> str:
    """Source text.

    Raises:
        ConfigurationError: It is no text, or holds a NUL or a lone surrogate.
    """
    return _checked_text("the code", code)


def checked_language(language: object) -> str:
    """The name of a language.

    Raises:
        ConfigurationError: It is no short text.
    """
    name = _checked_text("the language", language)
    if not name or len(name) > 100:
        raise ConfigurationError("the language has no name, or a very long one", hint='use "python"')
    return name


def checked_environment(what: str, variables: Mapping[str, str] | None) -> dict[str, str]:
    """Environment variables as a new dictionary. No value is ever part of a message.

    Raises:
        ConfigurationError: A name or a value cannot be an environment variable.
    """
    checked: dict[str, str] = {}
    for name, value in _items(what, variables):
        name = _checked_text(f"a name in {what}", name)
        if not _VARIABLE.fullmatch(name):  # some shells drop any other name without a word
            raise ConfigurationError(
                f"{what} holds the name {shown(name)}, which no shell takes for a variable",
                hint="use letters, digits and _, and no digit first; or set it with `env NAME=VALUE program`",
            )
        checked[name] = _checked_text(f"the value of {name} in {what}", value)
    return checked


def _items(what: str, mapping: object) -> Iterable[tuple[object, object]]:
    if mapping is None:
        return ()
    if not isinstance(mapping, Mapping):
        raise ConfigurationError(
            f"{what} is {type(mapping).__name__}, not a mapping", hint=f"give {what} as a dict of str"
        )
    return cast(Mapping[object, object], mapping).items()


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Labels of a sandbox as a new dictionary.

    Raises:
        ConfigurationError: A key is empty, ours, or a key or value is no text.
    """
    checked: dict[str, str] = {}
    for key, value in _items("metadata", metadata):
        key = _checked_text("a metadata key", key)
        if not key or key.startswith("sandboxio."):
            raise ConfigurationError(
                f"the metadata key {key!r} is empty or reserved",
                hint="use keys that do not start with 'sandboxio.'",
            )
        checked[key] = _checked_text(f"the metadata value of {key}", value)
    return checked


def checked_template(template: object) -> str | None:
    """The name of an image or template, or `None` for the backend's own.

    Raises:
        ConfigurationError: It is no text, or holds what no name can.
    """
    if template is None:
        return None
    name = _checked_text("the template", template)
    if not name or not name.isprintable():
        raise ConfigurationError(
            "the template is empty or holds control characters", hint="give the template's name"
        )
    return name


def checked_timeout(timeout: object) -> float:
    """A number of seconds: positive and finite.

    Raises:
        ConfigurationError: It is not.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise ConfigurationError(
            f"timeout is {type(timeout).__name__}, not a number of seconds",
            hint="give a positive number of seconds; nothing runs unbounded",
        )
    if timeout > MAX_SECONDS:
        raise ConfigurationError(
            "timeout is longer than a hundred years", hint="give a number of seconds that can be waited for"
        )
    if not math.isfinite(timeout) or timeout <= 0:
        raise ConfigurationError(
            f"timeout is {timeout}, and must be positive and finite",
            hint="give a positive number of seconds; nothing runs unbounded",
        )
    return float(timeout)


def checked_input(data: Any) -> bytes:
    """Standard input or file content as bytes; text is encoded as UTF-8.

    Raises:
        ConfigurationError: It is neither bytes nor text.
    """
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError:
            raise ConfigurationError(
                "the text holds a lone surrogate, which no UTF-8 text can",
                hint="give bytes, or encode the text first",
            ) from None
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(cast(bytes, data))
    raise ConfigurationError("the data is neither bytes nor text", hint="give bytes or str")


def require_fitting(arguments: Iterable[str], variables: Mapping[str, str]) -> None:
    """Refuse a command that Linux would not start.

    Args:
        arguments: What a program in the sandbox is started with.
        variables: Its whole environment.

    Raises:
        ConfigurationError: An argument or a variable is longer than Linux passes to a program.

    Example: `require_fitting(["sh", "-c", line], spec.env)`
    """
    longest = max(len(argument.encode()) for argument in arguments)
    if longest > ARGUMENT_LIMIT_BYTES:
        raise ConfigurationError(
            f"the command takes {longest} bytes in one argument, more than Linux passes to a program "
            f"({ARGUMENT_LIMIT_BYTES})",
            hint="write it to a file with files.write(), pass it as stdin, or use run_code() for code",
        )
    for name, value in variables.items():
        if len(name.encode()) + len("=") + len(value.encode()) > ARGUMENT_LIMIT_BYTES:
            raise ConfigurationError(
                f"the variable {name} is longer than Linux passes to a program "
                f"({ARGUMENT_LIMIT_BYTES} bytes)",
                hint="write its value to a file with files.write()",
            )


def absolute_path(what: str, path: object, home: str) -> str:
    """A sandbox path made absolute. `..` stays, since only the sandbox knows its links.

    Bytes that are no UTF-8 stand for themselves as `os.fsdecode` writes them, as in a listing.

    Raises:
        ConfigurationError: It is empty or holds what no path can.
    """
    text = _checked_text(what, path, errors="surrogateescape")
    if not text:
        raise ConfigurationError(f"{what} is empty", hint='use "." for the working folder')
    return posixpath.join(home, text)
