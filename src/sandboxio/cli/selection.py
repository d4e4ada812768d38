"""Which backend the demo uses when it is not told: the first real one that works, and why that one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sandboxio.backends import DEFAULT_BACKEND, KNOWN_BACKENDS, KnownBackend

if TYPE_CHECKING:
    from sandboxio import Backend

__all__ = ["Selection", "select_backend", "unset_credentials"]

_ANSWER_SECONDS: Final = 15.0


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
        problem, fix = await _problem(row, backend)
        if not problem:
            reason = "it is installed and works" + "".join(
                f"; {name}: {why}" for name, why in passed_over.items()
            )
            return Selection(f"{row.name}://", reason)
        passed_over[row.name] = problem
        hint = hint or fix
    if not passed_over and missing is not None:
        raise missing
    why = "; ".join(f"{name}: {words}" for name, words in passed_over.items())
    raise sandboxio.ConnectError(f"no installed backend works here: {why}", hint=hint)


def _rows() -> list[KnownBackend]:
    """The default first, since it needs no account."""
    rows = [row for row in KNOWN_BACKENDS.values() if row.extra is not None]
    return sorted(rows, key=lambda row: row.name != DEFAULT_BACKEND)


async def _problem(row: KnownBackend, backend: Backend) -> tuple[str, str]:
    """Why a backend cannot be used, and the fix; two empty texts if it can."""
    import anyio

    import sandboxio

    unset = unset_credentials(row.name)
    if unset:
        return f"{' and '.join(unset)} not set", row.sign_in
    if not isinstance(backend, sandboxio.DiagnosableBackend):
        return "", ""
    try:
        with anyio.fail_after(_ANSWER_SECONDS):
            checks = await backend.diagnose()
    except sandboxio.SandboxError as exc:
        return exc.message, exc.hint
    except TimeoutError:
        return f"no answer within {_ANSWER_SECONDS:g} s", ""
    return next(((check.detail, check.hint) for check in checks if check.status == "failed"), ("", ""))
