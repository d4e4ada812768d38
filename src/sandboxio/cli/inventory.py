"""What the library left at the backends: asking each for it, and ending one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sandboxio.cli.selection import unset_credentials

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sandboxio import ManagedSandbox, ReapableBackend, SandboxError

__all__ = ["Place", "ask", "ask_all", "end", "fields"]

_ANSWER_SECONDS: Final = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A backend that was asked for its sandboxes, or why it was not."""

    name: str
    backend: ReapableBackend | None = None
    found: tuple[ManagedSandbox, ...] = ()
    skipped: str = ""
    failure: SandboxError | None = None

    def row(self) -> dict[str, Any]:
        """Its part of the document."""
        return {
            "name": self.name,
            "count": len(self.found) if self.backend is not None else None,
            "skipped": self.skipped or None,
            "failure": fields(self.failure),
        }


async def ask_all(labels: Sequence[tuple[str, str]]) -> list[Place]:
    """Ask every installed backend; one that fails keeps none of the others from being asked."""
    import anyio

    import sandboxio

    found: dict[str, Place] = {}

    async def note(name: str) -> None:
        try:
            found[name] = await ask(f"{name}://", labels)
        except sandboxio.CapabilityNotSupported as exc:
            found[name] = Place(name, skipped=exc.message)
        except sandboxio.SandboxError as exc:
            found[name] = Place(name, failure=exc)

    names = sandboxio.installed_backends()
    async with anyio.create_task_group() as group:
        for name in names:
            unset = unset_credentials(name)
            if unset:
                found[name] = Place(name, skipped=f"{' and '.join(unset)} not set")
            else:
                group.start_soon(note, name)
    return [found[name] for name in names]


async def ask(target: str, labels: Sequence[tuple[str, str]]) -> Place:
    """Ask one backend.

    Raises:
        SandboxError: It cannot list, or does not answer as it should.
    """
    import sandboxio

    async def listed() -> Place:
        backend = sandboxio.backend_for(target)
        if not isinstance(backend, sandboxio.ReapableBackend):
            raise sandboxio.CapabilityNotSupported(
                f"the backend {backend.name} cannot list what was made there",
                hint="list and end its sandboxes with the provider's own tool",
            )
        found = tuple(
            managed
            for managed in await backend.list_managed()
            if all(managed.metadata.get(name) == value for name, value in labels)
        )
        return Place(backend.name, backend, found)

    return await _answered(listed, f"the backend {target.partition(':')[0]}")


async def end(backend: ReapableBackend, managed: ManagedSandbox) -> SandboxError | None:
    """End one, and return why it could not be: the others have their turn whatever happens to it."""
    from sandboxio import SandboxError

    try:
        await _answered(lambda: backend.kill_managed(managed.id), f"the backend {managed.backend}")
    except SandboxError as exc:
        return exc
    return None


async def _answered(question: Callable[[], Awaitable[T]], whom: str) -> T:
    """What a backend answers, in bounded time.

    Raises:
        SandboxError: Its own, or one that stands for what else it raised; the text of that may hold anything.
    """
    import anyio

    from sandboxio import ConnectError, SandboxError

    try:
        with anyio.move_on_after(_ANSWER_SECONDS):
            return await question()
    except SandboxError:
        raise
    except Exception as exc:
        raise ConnectError(f"{whom} failed with {type(exc).__name__}") from exc
    raise ConnectError(f"{whom} did not answer within {_ANSWER_SECONDS:g} s")


def fields(error: SandboxError | None) -> dict[str, str] | None:
    """The fields of an error, as every document has them."""
    if error is None:
        return None
    return {"code": error.code, "message": error.message, "hint": error.hint, "url": error.url}
