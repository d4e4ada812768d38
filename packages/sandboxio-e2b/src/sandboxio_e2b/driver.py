"""One live microVM as a driver: the ports, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from e2b_code_interpreter import AsyncSandbox

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
    """The driver of one microVM; see `sandboxio.adapter.driver.Driver`.

    Args:
        native: The SDK's sandbox.
        facts: What it said about itself.
        key: What the numbers of its executions are sealed with.
        template: The template's name.
        env: Variables of every execution; `None` if they are not known, as after a connect.

    Attributes:
        code: Where the template has a code interpreter; elsewhere code is fed to `python3`.
        capabilities: What this sandbox can do: it keeps no contexts without a code interpreter.
        limits: The template's, which are not known here.
        native: The SDK's `AsyncSandbox`, outside this library's version promise.
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
        self.native = native
        self.home = facts.home
        self.template = template
        self.limits = Resources()
        self.processes = E2BProcesses(
            native,
            home=facts.home,
            user_home=facts.user_home,
            env=env,
            numbered=facts.numbered,
            key=key,
            destroy=self.destroy,
        )
        self.files = E2BFiles(native, self.processes, facts.owner)
        self._contexts = Contexts(native, facts.home)
        self.code: E2BCode | None = None
        self.capabilities = ALL_CAPABILITIES & ~Capability.STATEFUL_CODE
        if facts.interprets_code:
            self.code = E2BCode(native, self.processes, self._contexts, env or {})
            self.capabilities = ALL_CAPABILITIES
        self._ended = False

    async def alive(self) -> bool:
        """Whether the sandbox answers."""
        return await self.native.is_running(request_timeout=_PROBE_SECONDS)

    async def destroy(self) -> None:
        """End the sandbox. One that has ended is success."""
        await self.native.kill(request_timeout=_PROBE_SECONDS)
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
