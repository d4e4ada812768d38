"""Where a path leads, by what E2B says of each link on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from e2b import EntryInfo, FileType
from e2b.exceptions import FileNotFoundException

from sandboxio.errors import FileSystemError, PathNotFound
from sandboxio_e2b.places import followed, located

pytestmark = pytest.mark.anyio

DIR, FILE, LINK = FileType.DIR, FileType.FILE, FileType.SYMLINK
ENTRIES: dict[str, tuple[FileType | None, str | None]] = {
    "/": (DIR, None),
    "/d": (DIR, None),
    "/d/sub": (DIR, None),
    "/f": (FILE, None),
    "/pipe": (None, None),
    "/resolved": (LINK, "/d/sub"),
    "/d/words": (LINK, "sub"),
    "/chain": (LINK, "d/words"),
    "/nowhere": (LINK, "/nowhere"),
    "/gone": (LINK, "/missing"),
    "/untold": (LINK, None),
    "/there": (LINK, "back"),
    "/back": (LINK, "there"),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Service:
    """E2B's answers about these entries; it counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.files = SimpleNamespace(get_info=self.get_info)

    async def get_info(self, path: str, request_timeout: float | None = None) -> EntryInfo:
        self.asked += 1
        if path not in ENTRIES:
            raise FileNotFoundException(path)
        kind, target = ENTRIES[path]
        return EntryInfo(
            name=path.rpartition("/")[2],
            type=kind,
            path=path,
            size=0,
            mode=0o755,
            permissions="",
            owner="user",
            group="user",
            modified_time=datetime.now(UTC),
            symlink_target=target,
        )


@pytest.fixture
def service() -> Any:
    return Service()


@pytest.mark.parametrize(
    ("path", "end", "asked"),
    [
        ("/d", "/d", 1),
        ("/pipe", "/pipe", 1),
        ("/resolved", "/d/sub", 2),
        ("/d/words", "/d/sub", 2),
        ("/chain", "/d/sub", 3),
    ],
)
async def test_a_link_is_followed_to_its_end(service: Any, path: str, end: str, asked: int) -> None:
    assert (await followed(service, path)).path == end
    assert service.asked == asked


@pytest.mark.parametrize("path", ["/nowhere", "/gone", "/untold", "/there"])
async def test_a_link_that_has_no_end_is_not_found_within_a_bound(service: Any, path: str) -> None:
    with pytest.raises(PathNotFound, match="leads nowhere"):
        await followed(service, path)
    assert service.asked <= 41


async def test_what_is_missing_is_left_to_the_sdk(service: Any) -> None:
    with pytest.raises(FileNotFoundException):
        await followed(service, "/missing")


@pytest.mark.parametrize(
    ("path", "place", "asked"),
    [
        ("/", "/", 0),
        ("//a/./b//", "/a/b", 0),
        ("/a..b/...", "/a..b/...", 0),
        ("/d/../f", "/f", 1),
        ("/resolved/../f", "/d/f", 2),
        ("/chain/../../new", "/new", 4),
        ("/..", "/", 1),
        ("/d/..", "/", 1),
    ],
)
async def test_two_dots_lead_to_the_parent_of_where_one_is(
    service: Any, path: str, place: str, asked: int
) -> None:
    assert await located(service, path) == place
    assert service.asked == asked


async def test_there_is_no_parent_of_what_is_no_directory(service: Any) -> None:
    with pytest.raises(FileSystemError, match="not a directory"):
        await located(service, "/f/../d")
