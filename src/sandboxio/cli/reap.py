"""`sandboxio reap`: what the library left at a provider, and its end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from sandboxio.backends import DEFAULT_BACKEND, EXAMPLE_TARGET
from sandboxio.cli.output import Output, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandboxio import ManagedSandbox, ReapableBackend

__all__ = ["DESCRIPTION", "SUMMARY", "configure", "run"]

SUMMARY: Final = "list what sandboxio made at a backend, and end it with --kill"
DESCRIPTION: Final = (
    "List every sandbox that sandboxio made at a backend, stopped ones included. Nothing is changed "
    "without --kill. With it every listed sandbox is ended, also one that another program uses now: "
    "narrow the list by --label first."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--backend",
        metavar="DSN",
        default=f"{DEFAULT_BACKEND}://",
        help=f"where to look, such as {EXAMPLE_TARGET.partition('://')[0]}://; the default is %(default)s",
    )
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        type=_label,
        default=[],
        help="only sandboxes with this metadata; given several times, all must match",
    )
    parser.add_argument("--kill", action="store_true", help="end what is listed")


def run(arguments: argparse.Namespace, output: Output) -> bool:
    """List, end if that is wanted, and say whether all that should end has ended."""
    import anyio

    return anyio.run(_reap, arguments, output)


async def _reap(arguments: argparse.Namespace, output: Output) -> bool:
    import sandboxio

    backend = sandboxio.backend_for(arguments.backend)
    output.document.update(backend=backend.name, killed=arguments.kill, sandboxes=[])
    if not isinstance(backend, sandboxio.ReapableBackend):
        raise sandboxio.CapabilityNotSupported(
            f"the backend {backend.name} cannot list what was made there",
            hint="list and end its sandboxes with the provider's own tool",
        )
    found = [managed for managed in await backend.list_managed() if _matches(managed, arguments.label)]
    ok = True
    for managed in found:
        failure = await _end(backend, managed) if arguments.kill else None
        ok = ok and failure is None
        _show(managed, failure, output, killed=arguments.kill)
    output.line(_summary(len(found), killed=arguments.kill))
    return ok


async def _end(backend: ReapableBackend, managed: ManagedSandbox) -> str | None:
    """End one, and return why it could not be: the others have their turn whatever happens to it."""
    import sandboxio

    try:
        await backend.kill_managed(managed.id)
    except sandboxio.SandboxError as exc:
        return exc.message
    return None


def _show(managed: ManagedSandbox, failure: str | None, output: Output, *, killed: bool) -> None:
    row = _row(managed)
    if killed:
        row["ended"] = failure is None
    if failure is not None:
        row["failure"] = failure
    output.document["sandboxes"].append(row)
    word = "" if not killed else output.styled("ended ", "good") if failure is None else _failed(output)
    labels = " ".join(f"{name}={value}" for name, value in sorted(managed.metadata.items()))
    created = managed.created_at.isoformat(timespec="seconds") if managed.created_at else "unknown"
    expires = managed.expires_at.isoformat(timespec="seconds") if managed.expires_at else "unknown"
    words = f"{managed.id[:12]:<12} {managed.state:<8} created {created} expires {expires} {labels}".rstrip()
    output.line(word + printable(words))
    if failure is not None:
        output.line(f"       {printable(failure)}")


def _failed(output: Output) -> str:
    return output.styled("FAIL  ", "bad")


def _row(managed: ManagedSandbox) -> dict[str, Any]:
    return {
        "id": managed.id,
        "backend": managed.backend,
        "state": managed.state,
        "created_at": managed.created_at.isoformat() if managed.created_at else None,
        "expires_at": managed.expires_at.isoformat() if managed.expires_at else None,
        "metadata": dict(managed.metadata),
    }


def _summary(count: int, *, killed: bool) -> str:
    if not count:
        return "nothing is left"
    noun = "sandbox" if count == 1 else "sandboxes"
    return f"{count} {noun}" if killed else f"{count} {noun}; --kill ends what is listed"


def _matches(managed: ManagedSandbox, labels: Sequence[tuple[str, str]]) -> bool:
    return all(managed.metadata.get(name) == value for name, value in labels)


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
