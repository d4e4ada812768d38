"""What every adapter checks before anything is sent: commands, variables, paths and times."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sandboxio.errors import ConfigurationError

__all__ = [
    "absolute_path",
    "checked_code",
    "checked_command",
    "checked_environment",
    "checked_input",
    "checked_metadata",
    "checked_timeout",
]


def _checked_text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{what} is {type(value).__name__}, not text", hint=f"give {what} as str")
    if "\0" in value:
        raise ConfigurationError(f"{what} holds a NUL character", hint="remove the NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"{what} holds a lone surrogate, which no UTF-8 text can",
            hint='encode the text first, for example with errors="replace"',
        ) from None
    return value


def checked_command(cmd: Any) -> str | tuple[str, ...]:
    """A command as it goes to a driver.

    Raises:
        ConfigurationError: It is empty, of a wrong type, or holds what no argument can.
    """
    if isinstance(cmd, str):
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
            f"the program's name {argv[0][:40]!r} starts with a dash, which shells take for an option",
            hint="give the program's path, such as ./-name",
        )
    return argv


def checked_code(code: object) -> str:
    """Source text.

    Raises:
        ConfigurationError: It is no text, or holds a NUL or a lone surrogate.
    """
    return _checked_text("the code", code)


def checked_environment(what: str, variables: Mapping[str, str] | None) -> dict[str, str]:
    """Environment variables as a new dictionary. No value is ever part of a message.

    Raises:
        ConfigurationError: A name or a value cannot be an environment variable.
    """
    checked: dict[str, str] = {}
    for name, value in (variables or {}).items():
        name = _checked_text(f"a name in {what}", name)
        if not name or "=" in name:
            raise ConfigurationError(
                f"{what} holds a name that is empty or contains '='",
                hint=f"use names such as API_TOKEN in {what}",
            )
        checked[name] = _checked_text(f"the value of {name} in {what}", value)
    return checked


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Labels of a sandbox as a new dictionary.

    Raises:
        ConfigurationError: A key is empty, ours, or a key or value is no text.
    """
    checked: dict[str, str] = {}
    for key, value in (metadata or {}).items():
        key = _checked_text("a metadata key", key)
        if not key or key.startswith("sandboxio."):
            raise ConfigurationError(
                f"the metadata key {key!r} is empty or reserved",
                hint="use keys that do not start with 'sandboxio.'",
            )
        checked[key] = _checked_text(f"the metadata value of {key}", value)
    return checked


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


def absolute_path(what: str, path: object, home: str) -> str:
    """A sandbox path made absolute. `..` stays, since only the sandbox knows its links.

    Raises:
        ConfigurationError: It is empty or holds what no path can.
    """
    text = _checked_text(what, path)
    if not text:
        raise ConfigurationError(f"{what} is empty", hint='use "." for the working folder')
    return posixpath.join(home, text)
