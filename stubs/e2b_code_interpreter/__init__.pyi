# Types that the SDK does not ship, for the part of it that is used here.

from typing import Any

import e2b
import httpx

class Context:
    id: str

class AsyncSandbox(e2b.AsyncSandbox):
    default_template: str
    @property
    def _client(self) -> httpx.AsyncClient: ...
    @property
    def _jupyter_url(self) -> str: ...
    @classmethod
    async def create(  # type: ignore[override]
        cls,
        template: str | None = None,
        timeout: int | None = None,
        metadata: dict[str, str] | None = None,
        envs: dict[str, str] | None = None,
        allow_internet_access: bool | None = None,
        network: dict[str, Any] | None = None,
        lifecycle: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        **opts: Any,
    ) -> AsyncSandbox: ...
    @classmethod
    async def connect(  # type: ignore[override]
        cls, sandbox_id: str, timeout: int | None = None, **opts: Any
    ) -> AsyncSandbox: ...
    async def create_code_context(
        self, cwd: str | None = None, language: str | None = None, request_timeout: float | None = None
    ) -> Context: ...
    async def list_code_contexts(self) -> list[Context]: ...
    async def restart_code_context(self, context: str) -> None: ...
    async def remove_code_context(self, context: str) -> None: ...
