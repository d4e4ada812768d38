"""One live microVM as a driver: the ports, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.driver import CodePort, FilePort, ProcessPort
from sandboxio.errors import SandboxError
from sandboxio.models import Capability, Resources
from sandboxio_e2b.code import E2BCode
from sandboxio_e2b.contexts import Contexts
from sandboxio_e2b.errors import translate
from sandboxio_e2b.files import E2BFiles
from sandboxio_e2b.handle import EXACT_OUTPUT
from sandboxio_e2b.probe import SandboxFacts
from sandboxio_e2b.process import E2BProcesses

__all__ = ["ALL_CAPABILITIES", "E2BDriver"]

ALL_CAPABILITIES: Final = (
    Capability.RUN_COMMAND
    | Capability.RUN_CODE
    | Capability.STATEFUL_CODE
    | Capability.STREAMING
    | Capability.FILESYSTEM
    | Capability.UPLOAD_DOWNLOAD
    | Capability.NETWORK_POLICY
    | Capability.NETWORK_ALLOWLIST
    | (Capability.RAW_OUTPUT if EXACT_OUTPUT else Capability(0))
)

_PROBE_SECONDS: Final = 5.0


class E2BDriver:
    """The driver of one microVM.

    Args:
        native: The SDK's sandbox.
        facts: What it said about itself.
        key: What the numbers of its executions are sealed with.
        template: The template's name.
        env: Variables of every execution; `None` if they are not known, as after a connect.
    """

    def __init__(
        self,
        native: AsyncSandbox,
        facts: SandboxFacts,
        *,
        key: str,
        template: str,
        env: Mapping[str, str] | None,
    ) -> None:
        self._native = native
        self._facts = facts
        self._template = template
        self._processes = E2BProcesses(
            native,
            home=facts.home,
            user_home=facts.user_home,
            env=env,
            numbered=facts.numbered,
            key=key,
            destroy=self.destroy,
        )
        self._files = E2BFiles(native, self._processes, facts.owner)
        self._contexts = Contexts(native, facts.home)
        self._code = (
            E2BCode(native, self._processes, self._contexts, env or {}) if facts.interprets_code else None
        )
        self._ended = False

    @property
    def capabilities(self) -> Capability:
        """What this sandbox can do."""
        return ALL_CAPABILITIES if self._code is not None else ALL_CAPABILITIES & ~Capability.STATEFUL_CODE

    @property
    def processes(self) -> ProcessPort:
        """Commands."""
        return self._processes

    @property
    def code(self) -> CodePort | None:
        """Code, where the template has a code interpreter; elsewhere it is fed to `python3`."""
        return self._code

    @property
    def files(self) -> FilePort:
        """Files."""
        return self._files

    @property
    def home(self) -> str:
        """The working folder."""
        return self._facts.home

    @property
    def template(self) -> str:
        """The template's name."""
        return self._template

    @property
    def limits(self) -> Resources:
        """The template's, which are not known here."""
        return Resources()

    @property
    def native(self) -> Any:
        """The SDK's `AsyncSandbox`, outside this library's version promise."""
        return self._native

    async def alive(self) -> bool:
        """Whether the sandbox answers."""
        return await self._native.is_running(request_timeout=_PROBE_SECONDS)

    async def destroy(self) -> None:
        """End the sandbox. One that has ended is success."""
        await self._native.kill(request_timeout=_PROBE_SECONDS)
        self._ended = True

    async def detach(self) -> None:
        """Nothing here ends the sandbox with this process."""

    async def aclose(self) -> None:
        """Remove the contexts of this handle, which nobody else can name, from a sandbox that lives on.

        Connections belong to the SDK and the process.
        """
        if not self._ended:
            await self._contexts.remove_all()

    def translate(self, exc: Exception) -> SandboxError | None:
        """See `sandboxio_e2b.errors.translate`."""
        return translate(exc)
