"""A container is sandboxio's by its name and its labels together; a commit copies only the latter."""

from __future__ import annotations

import pytest

from sandboxio_docker.ownership import container_name, is_own_container, look_name

CREATION = "0123456789abcdef" * 2
LABELS = {"sandboxio.managed": "true", "sandboxio.creation": CREATION}


@pytest.mark.parametrize(
    "name", [container_name(CREATION), "/" + container_name(CREATION), look_name(CREATION)]
)
def test_a_name_that_belongs_to_the_creation_is_ours(name: str) -> None:
    assert is_own_container(name, LABELS)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("/festive_wright", LABELS),
        ("/" + container_name("f" * 32), LABELS),
        ("/" + container_name(CREATION), {**LABELS, "sandboxio.managed": "no"}),
        ("/" + container_name(CREATION), {"sandboxio.managed": "true"}),
        ("/sandboxio-", {"sandboxio.managed": "true", "sandboxio.creation": ""}),
        ("/sandboxio-a\n", {"sandboxio.managed": "true", "sandboxio.creation": "a\n"}),
    ],
)
def test_anything_else_is_not(name: str, labels: dict[str, str]) -> None:
    assert not is_own_container(name, labels)
