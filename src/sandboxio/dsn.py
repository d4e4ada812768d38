"""The text form of a target: `<backend>://[<template>][?name=value&…]`.

It is a grammar of its own and no URL, since image names are none: a registry's port and a digest
must come through unchanged. What looks like a credential is refused, and no part of a refused text
is ever repeated in a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from sandboxio.backends import EXAMPLE_TARGET, KNOWN_BACKENDS
from sandboxio.errors import ConfigurationError
from sandboxio.models import FrozenMapping
from sandboxio.registry import BACKEND_NAME

__all__ = ["Dsn", "parse_dsn"]

MAX_LENGTH: Final = 2048
_FORM: Final = "<backend>://[<template>][?name=value&…]"
_PARAM_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_DIGEST: Final = re.compile(r"@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,}\Z", re.ASCII)

_SECRET_WORD: Final = re.compile(
    r"api_?keys?|auth|authorization|bearer|credentials?|keys?|pass|passphrase|passw(?:or)?d|pat|pwd|secrets?|tokens?"
)
_KEY_PREFIX: Final = re.compile(
    r"(?:sk|pk|rk)[-_]|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|pypi-|dckr_pat_"
    r"|eyJ|-----BEGIN|Bearer "
)
_LONG_TOKEN: Final = re.compile(r"[A-Za-z0-9+/_=-]{24,}", re.ASCII)
_LONG_HEX: Final = re.compile(r"[0-9A-Fa-f]{32,}", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class Dsn:
    """A parsed target.

    Attributes:
        backend: The backend's name.
        template: The backend's word for what to start, as written; `None` when empty.
        timeout: The lifetime in seconds, or `None` when it is not given.
        params: All other parameters, decoded. The backend knows them.
    """

    backend: str
    template: str | None = None
    timeout: float | None = None
    params: Mapping[str, str] = FrozenMapping()

    def __repr__(self) -> str:
        names = (["timeout"] if self.timeout is not None else []) + list(self.params)
        query = "?" + "&".join(f"{name}=…" for name in names) if names else ""
        return f"<Dsn {self.backend}://{self.template or ''}{query}>"


def parse_dsn(text: str) -> Dsn:
    """Read a DSN.

    Raises:
        ConfigurationError: It is malformed, or holds what looks like a credential.

    Example: `parse_dsn("docker://registry.example:5000/team/img:tag?timeout=60")`
    """
    if len(text) > MAX_LENGTH:
        raise _malformed(f"it is longer than {MAX_LENGTH} characters")
    for position, character in enumerate(text):
        if character.isspace() or not character.isprintable():
            raise _malformed(f"U+{ord(character):04X} at position {position} is not allowed")
    backend, separator, rest = text.partition("://")
    if not separator:
        raise _malformed('"://" is missing')
    if not BACKEND_NAME.fullmatch(backend):
        raise _malformed('what stands before "://" is no backend name')
    template, question, query = rest.partition("?")
    _refuse_user_info(backend, template)
    params = _parse_query(backend, query) if question else {}
    timeout = params.pop("timeout", None)
    return Dsn(
        backend,
        template or None,
        None if timeout is None else _parse_seconds(timeout),
        FrozenMapping(params),
    )


def _parse_query(backend: str, query: str) -> dict[str, str]:
    params: dict[str, str] = {}
    for number, pair in enumerate(query.split("&"), start=1):
        name, equals, raw = pair.partition("=")
        if _names_secret(name):
            raise _credential(backend, f"parameter {number}")
        if not equals or not raw:
            raise _malformed(f"parameter {number} has no value")
        if not _PARAM_NAME.fullmatch(name):
            raise _malformed(f"parameter {number} has no proper name")
        if name in params:
            raise _malformed(f"parameter {name} is given twice")
        value = _decode(name, raw)
        if _looks_like_key(value):
            raise _credential(backend, f"the value of {name}")
        params[name] = value
    return params


def _decode(name: str, raw: str) -> str:
    if _BAD_ESCAPE.search(raw):
        raise _malformed(f"the value of {name} has a % that no two hexadecimal digits follow")
    try:
        value = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise _malformed(f"the value of {name} does not decode to UTF-8") from None
    if not value.isprintable():
        raise _malformed(f"the value of {name} holds a control character")
    return value


def _parse_seconds(text: str) -> float:
    seconds = float(text) if _SECONDS.fullmatch(text) else 0.0
    if seconds <= 0:
        raise _malformed("timeout is no positive number of seconds, such as 60 or 2.5")
    return seconds


def _refuse_user_info(backend: str, template: str) -> None:
    user_info, at, _ = _DIGEST.sub("", template).rpartition("@")
    if at and (":" in user_info or _looks_like_key(user_info)):
        raise _credential(backend, 'the part before "@"')


def _names_secret(name: str) -> bool:
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return any(_SECRET_WORD.fullmatch(word) for word in words)


def _looks_like_key(value: str) -> bool:
    prefixes = tuple(row.key_prefix for row in KNOWN_BACKENDS.values() if row.key_prefix)
    if _KEY_PREFIX.match(value) or value.startswith(prefixes) or _LONG_HEX.fullmatch(value):
        return True
    if re.match(r"(?:[a-z]+://)?[^/@\s]+:[^/@\s]+@", value):
        return True
    kinds = (str.isdigit, str.islower, str.isupper)
    return _LONG_TOKEN.fullmatch(value) is not None and all(any(map(kind, value)) for kind in kinds)


def _malformed(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"the target is malformed: {what}",
        hint=f"write it as {_FORM}, such as {EXAMPLE_TARGET}?timeout=60",
    )


def _credential(backend: str, where: str) -> ConfigurationError:
    known = KNOWN_BACKENDS.get(backend)
    return ConfigurationError(
        f"{where} of the target looks like a credential, and a target may not hold one",
        hint=known.sign_in if known else "set the provider's own environment variable instead",
    )
