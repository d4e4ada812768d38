"""The sandboxes of an account, as the control plane lists them.

The SDK takes an answer that is no list for an empty one, and then nobody ends what is there. So the
request is made with the SDK's client, and the answer looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from e2b import ConnectionConfig
from e2b.api import handle_api_exception
from e2b.api.client.api.sandboxes import get_v2_sandboxes
from e2b.api.client.models import ListedSandbox
from e2b.api.client_async import get_api_client  # pyright: ignore[reportUnknownVariableType] -- its kwargs

from sandboxio.errors import ConnectError

__all__ = ["labels_of", "list_labelled"]

_MOST_PAGES: Final = 1000
_PAGE_SIZE: Final = 100
_NEXT: Final = "x-next-token"


async def list_labelled(labels: Mapping[str, str], options: Mapping[str, Any]) -> list[ListedSandbox]:
    """All with these labels, paused ones included. What the provider filters wrongly is left out.

    Args:
        labels: Metadata that each of them carries, among others.
        options: How to call the SDK.

    Raises:
        ConnectError: The answer is no list, or has no end.
        Exception: Whatever the SDK makes of a refusal.
    """
    client = get_api_client(ConnectionConfig(**options))
    wanted = urlencode({quote(name): quote(value) for name, value in labels.items()})
    page: dict[str, Any] = {"metadata": wanted, "limit": _PAGE_SIZE}
    found: list[ListedSandbox] = []
    for _ in range(_MOST_PAGES):
        answer = await get_v2_sandboxes.asyncio_detailed(client=client, **page)
        if answer.status_code >= 300:
            raise handle_api_exception(answer)
        if not isinstance(answer.parsed, list) or not answer.content.lstrip().startswith(b"["):
            raise ConnectError("what answers does not speak E2B's protocol: its list of sandboxes is none")
        found += [each for each in answer.parsed if labels.items() <= labels_of(each).items()]
        if not answer.headers.get(_NEXT):
            return found
        page["next_token"] = answer.headers[_NEXT]
    raise ConnectError(f"E2B's list of sandboxes has no end after {_MOST_PAGES} pages")


def labels_of(sandbox: ListedSandbox) -> dict[str, str]:
    """The metadata of a listed sandbox."""
    metadata: object = sandbox.metadata  # a marker of the SDK's where there is none
    return cast(dict[str, str], metadata) if isinstance(metadata, dict) else {}
