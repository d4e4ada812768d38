"""Which backend the demo uses when it is not told: the first real one that works, and why that one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandboxio.backends import DEFAULT_BACKEND, KNOWN_BACKENDS, KnownBackend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sandboxio import Backend, Check

__all__ = ["Selection", "select_backend", "unset_credentials"]


@dataclass(frozen=True, slots=True)
class Selection:
    """A backend, as a target for `create`.

    Attributes:
        target: Its DSN.
        reason: Why it was chosen, in a few words.
    """

    target: str
    reason: str


def unset_credentials(backend: str) -> tuple[str, ...]:
    """The variables that a known backend needs for its credentials and that are not set."""
    known = KNOWN_BACKENDS.get(backend)
    return tuple(name for name in (known.credentials if known else ()) if not os.environ.get(name))


async def select_backend() -> Selection:
    """The first known backend that is installed, has its credentials and fails no check.

    A backend that executes nothing is never among them.

    Raises:
        BackendNotInstalled: None is installed.
        ConnectError: None of those that are works; the message says why of each.
    """
    import sandboxio

    passed_over: dict[str, str] = {}
    hint = ""
    missing: sandboxio.BackendNotInstalled | None = None
    for row in _rows():
        try:
            backend = sandboxio.backend_for(f"{row.name}://")
        except sandboxio.BackendNotInstalled as exc:
            missing = missing or exc
            continue
        checks = await _checks(row, backend)
        failed = next((check for check in checks if check.status == "failed"), None)
        if failed is None:
            return Selection(f"{row.name}://", _reason(checks, passed_over))
        passed_over[row.name] = failed.detail
        hint = hint or failed.hint
    if not passed_over and missing is not None:
        raise missing
    why = "; ".join(f"{name}: {words}" for name, words in passed_over.items())
    raise sandboxio.ConnectError(f"no installed backend works here: {why}", hint=hint)


def _rows() -> list[KnownBackend]:
    """The default first, since it needs no account."""
    rows = [row for row in KNOWN_BACKENDS.values() if row.extra is not None]
    return sorted(rows, key=lambda row: row.name != DEFAULT_BACKEND)


async def _checks(row: KnownBackend, backend: Backend) -> tuple[Check, ...]:
    """What it says about itself; without its credentials it is not asked."""
    from sandboxio import Check
    from sandboxio.diagnosis import checks_of

    unset = unset_credentials(row.name)
    if unset:
        return (Check("credentials", "failed", f"{' and '.join(unset)} not set", row.sign_in),)
    return await checks_of(row.name, backend)


def _reason(checks: Sequence[Check], passed_over: Mapping[str, str]) -> str:
    """Why a backend was chosen: what may still be in its way, and what was in that of the others."""
    warnings = [f"{check.name}: {check.detail}" for check in checks if check.status == "warning"]
    words = ["it is installed", *warnings] if warnings else ["it is installed and works"]
    return "; ".join([*words, *(f"{name}: {why}" for name, why in passed_over.items())])
